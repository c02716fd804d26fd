import { Elysia } from 'elysia'

// Server of `bun page.ts FILE`: one Elysia route that returns the JSON object in the file.
const page: object = await Bun.file(process.argv[2] ?? '').json()
const app = new Elysia().get('/v1/logs', () => page).listen({ port: 0, hostname: '127.0.0.1' })
process.stdout.write(`${app.server?.port}\n`)
