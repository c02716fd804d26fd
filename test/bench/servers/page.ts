import { Elysia } from 'elysia'

// `bun page.ts FILE`: a bare Elysia route that answers what the file holds, which is JSON, as an object.
const page: object = await Bun.file(process.argv[2] ?? '').json()
const app = new Elysia().get('/v1/logs', () => page).listen({ port: 0, hostname: '127.0.0.1' })
process.stdout.write(`${app.server?.port}\n`)
