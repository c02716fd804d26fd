import type { Application } from './resources.ts'

type QuickStart = {
  /** Name of the language or tool, for people. */
  title: string
  text: string
}

type QuickStartInput = { serverUrl: string; app: Pick<Application, 'clientId' | 'environment'> }

/** Test applications have numbers with a fixed code; in a live application those numbers would be sent to. */
const exampleFor = ({ environment }: QuickStartInput['app']) =>
  environment === 'test'
    ? { phone: '+14155550100', code: '424242', about: 'The code for this number is always 424242.' }
    : { phone: '+14155550132', code: '123456', about: 'Without a provider, the code is in the inbox.' }

/**
 * Returns examples that send and verify a code from a backend, ready to paste. They hold no secrets: those come from
 * the environment.
 */
export const quickStarts = (input: QuickStartInput): readonly [QuickStart, ...QuickStart[]] => [
  { title: 'curl', text: curlText(input) },
  { title: 'TypeScript', text: typescriptText(input) },
]

function curlText({ serverUrl, app }: QuickStartInput) {
  const { phone, code, about } = exampleFor(app)
  const call = (path: string, body: string) => `curl ${serverUrl}${path} \\
  -H "x-client-id: $OTPD_CLIENT_ID" \\
  -H "x-client-secret: $OTPD_CLIENT_SECRET" \\
  -H "x-api-key: $OTPD_API_KEY" \\
  -H 'content-type: application/json' \\
  -d '${body}'
`
  return `OTPD_CLIENT_ID=${app.clientId}
# OTPD_CLIENT_SECRET and OTPD_API_KEY come from your environment.

# Send a code. ${about}
${call('/v1/otp/send', `{"phone": "${phone}"}`)}
# Verify it, with the requestId from the response.
${call('/v1/otp/verify', `{"requestId": "otp_...", "code": "${code}"}`)}`
}

function typescriptText({ serverUrl, app }: QuickStartInput) {
  const { phone, about } = exampleFor(app)
  return `// OTPD_CLIENT_SECRET and OTPD_API_KEY come from your environment.
const server = '${serverUrl}'
const headers = {
  'content-type': 'application/json',
  'x-client-id':
    '${app.clientId}',
  'x-client-secret': process.env.OTPD_CLIENT_SECRET ?? '',
  'x-api-key': process.env.OTPD_API_KEY ?? '',
}

async function post(path: string, values: object) {
  const body = JSON.stringify(values)
  const response = await fetch(server + path, { method: 'POST', headers, body })
  return { status: response.status, ...(await response.json()) }
}

// ${about}
const sent = await post('/v1/otp/send', { phone: '${phone}' })
if (sent.error) throw new Error(sent.error.message)
const { requestId } = sent.data

// 200 verified; 400 wrong code, ask again; 409 already used; 410 send a
// new code; 429 wait for the seconds in the Retry-After header.
const code = prompt('Code:')
const verified = await post('/v1/otp/verify', { requestId, code })
console.log(verified.status, verified.data?.status ?? verified.error.code)
`
}
