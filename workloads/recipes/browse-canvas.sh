# A browser that draws a moving picture at the screen's rate, as games and maps do.
# needs: chromium
cat >page.html <<'HTML'
<!doctype html><meta charset=utf-8><title>canvas</title><canvas id=c width=640 height=360></canvas><script>
const g = document.getElementById('c').getContext('2d')
const balls = Array.from({ length: 300 }, (_, i) => ({ x: i * 37 % 640, y: i * 91 % 360, u: 1 + i % 5, v: 1 + i % 7 }))
const frame = () => {
  g.fillStyle = 'rgba(255,255,255,0.3)'
  g.fillRect(0, 0, 640, 360)
  for (const b of balls) {
    b.x += b.u; b.y += b.v
    if (b.x < 0 || b.x > 640) b.u = -b.u
    if (b.y < 0 || b.y > 360) b.v = -b.v
    g.beginPath(); g.arc(b.x, b.y, 4, 0, 7); g.fillStyle = `hsl(${b.x},70%,50%)`; g.fill()
  }
  requestAnimationFrame(frame)
}
frame()
</script>
HTML
record -- sh -c 'timeout 6 "$@" 2>/dev/null; [ $? -eq 124 ]' browse \
    chromium --headless --no-sandbox --disable-gpu --disable-quic \
    --no-first-run --disable-background-networking --disable-component-update --disable-sync \
    --user-data-dir="$work/profile" --remote-debugging-port=0 "file://$work/page.html"
