# A browser with a web application: every 700 ms a large JSON text is parsed, filtered, sorted and shown as a table.
# needs: chromium
cat >page.html <<'HTML'
<!doctype html><meta charset=utf-8><title>application</title><input id=q><table id=t></table><script>
const rows = Array.from({ length: 20000 }, (_, i) => ({ id: i, name: 'item ' + (i * 7919 % 20011), price: i * 31 % 997 }))
const text = JSON.stringify(rows)
let n = 0
setInterval(() => {
  n++
  const word = String(n % 100)
  document.getElementById('q').value = word
  const found = JSON.parse(text).filter(r => r.name.includes(word)).sort((a, b) => a.price - b.price).slice(0, 200)
  document.getElementById('t').innerHTML = found.map(r => `<tr><td>${r.id}<td>${r.name}<td>${r.price}`).join('')
}, 700)
</script>
HTML
record -- sh -c 'timeout 12 "$@" 2>/dev/null; [ $? -eq 124 ]' browse \
    chromium --headless --no-sandbox --disable-gpu --disable-quic \
    --no-first-run --disable-background-networking --disable-component-update --disable-sync \
    --user-data-dir="$work/profile" --remote-debugging-port=0 "file://$work/page.html"
