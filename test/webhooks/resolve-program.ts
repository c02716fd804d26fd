import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createResolver } from '../../src/webhooks/resolve.ts'

// A name server that answers no question about `hang…`, and otherwise gives 10.1.2.3. It is what resolv.conf names.

const hasAsked = Promise.withResolvers<void>()
const nameServer = createSocket('udp4')
nameServer.on('message', (query, { port, address }) => {
  const end = query.indexOf(0, 12) + 5
  const question = query.subarray(12, end)
  if (question.includes('hang')) return hasAsked.resolve()
  const isAddress = question.readUInt16BE(question.length - 4) === 1
  const header = Buffer.from(query.subarray(0, 12))
  header.writeUInt16BE(0x8180, 2)
  header.writeUInt32BE(isAddress ? 0x00010000 : 0, 6)
  header.writeUInt16BE(0, 10)
  const answer = Buffer.from('c00c000100010000000500040a010203', 'hex')
  nameServer.send(Buffer.concat([header, question, ...(isAddress ? [answer] : [])]), port, address)
})
nameServer.bind(53, '127.0.0.77')
await once(nameServer, 'listening')

const resolve = createResolver()
for (let index = 0; index < 20; index++) void resolve(`hang${index}.example`).catch(() => {})
await hasAsked.promise
const [found] = await resolve('good.example')
process.stdout.write(`${found?.address}\n`)
process.exit(0)
