# A Node.js server that renders pages, and a client that asks for 150 of them a second for six seconds.
# needs: nodejs
cat >server.js <<'JS'
const http = require('http')
const rows = Array.from({ length: 400 }, (_, i) => ({ id: i, name: `item ${i * 7919 % 1009}`, price: i * 31 % 97 }))
const server = http.createServer((ask, answer) => {
  const word = new URL(ask.url, 'http://localhost').searchParams.get('q')
  const found = rows.filter(r => r.name.includes(word)).sort((a, b) => a.price - b.price)
  answer.end('<table>' + found.map(r => `<tr><td>${r.id}<td>${r.name}<td>${r.price}`).join('') + '</table>')
})
server.listen(0, '127.0.0.1', () => process.send(server.address().port))
process.on('disconnect', () => process.exit(0))
JS
cat >client.js <<'JS'
const http = require('http')
const server = require('child_process').fork('./server.js')
server.once('message', port => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 })
  let asked = 0, answered = 0
  const timer = setInterval(() => {
    http.get({ port, agent, host: '127.0.0.1', path: `/?q=${asked % 10}` }, answer => {
      answer.resume()
      answer.on('end', () => { if (++answered === 900) process.exit(0) })
    })
    if (++asked === 900) clearInterval(timer)
  }, 1000 / 150)
})
JS
record -- node client.js
