import { Elysia, t } from 'elysia'

// Baseline: otpd's web framework, which validates the body of a send and does nothing else.
const app = new Elysia()
  .post(
    '/v1/otp/send',
    ({ body, status }) => status(201, { data: { phone: body.phone, status: 'pending' as const } }),
    {
      body: t.Object(
        { phone: t.String({ pattern: '^\\+[1-9]\\d{6,14}$' }) },
        { additionalProperties: false },
      ),
      response: { 201: t.Object({ data: t.Object({ phone: t.String(), status: t.Literal('pending') }) }) },
    },
  )
  .listen({ port: 0, hostname: '127.0.0.1' })
process.stdout.write(`${app.server?.port}\n`)
