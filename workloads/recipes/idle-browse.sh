# A browser with something to do now and then on a machine that otherwise idles.
# needs: chromium
cat >page.html <<'HTML'
<!doctype html><meta charset=utf-8><title>page</title><body><script>
// Every few seconds a page's worth of work: layout, some script, a scroll; in between a blinking cursor and a clock.
let n = 0
const fill = () => {
  document.body.innerHTML = ''
  for (let i = 0; i < 1500; i++) {
    const p = document.createElement('p')
    p.textContent = 'line ' + i + ' of page ' + n + ' ' + Math.sin(i * n).toString(36).repeat(4)
    document.body.append(p)
  }
  n++
  window.scrollTo({ top: 4000, behavior: 'smooth' })
}
setInterval(fill, 4200)
setInterval(() => { document.title = new Date().toISOString() }, 1000)
setInterval(() => { document.body.style.caretColor = n % 2 ? 'red' : 'black' }, 530)
fill()
</script>
HTML
# To run until the time is over (status 124) is what it shall do.
record -- sh -c 'timeout 20 "$@" 2>/dev/null; [ $? -eq 124 ]' browse \
    chromium --headless --no-sandbox --disable-gpu --disable-quic \
    --no-first-run --disable-background-networking --disable-component-update --disable-sync \
    --user-data-dir="$work/profile" --remote-debugging-port=0 "file://$work/page.html"
