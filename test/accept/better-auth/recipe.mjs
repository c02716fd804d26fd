// The phone plugin of the real better-auth, with codes that otpd makes, sends and checks.
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { APIError } from 'better-auth/api'
import { phoneNumber } from 'better-auth/plugins'
import { InvalidRequestError, Otpd, RateLimitError } from './client/index.js'

const otp = new Otpd()

// As in the guide.
async function toApiError(call) {
  try {
    return await call
  } catch (error) {
    if (error instanceof InvalidRequestError) throw new APIError('BAD_REQUEST', { message: error.message })
    if (error instanceof RateLimitError) throw new APIError('TOO_MANY_REQUESTS', { message: error.message })
    throw error
  }
}

const auth = betterAuth({
  database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
  secret: 'a-secret-of-at-least-thirty-two-characters',
  baseURL: 'http://localhost:3000',
  rateLimit: { enabled: false },
  plugins: [
    phoneNumber({
      sendOTP: async ({ phoneNumber }) => {
        await toApiError(otp.send({ phone: phoneNumber }))
      },
      verifyOTP: async ({ phoneNumber, code }) =>
        (await toApiError(otp.check({ phone: phoneNumber, code }))).verified,
      signUpOnVerification: { getTempEmail: (phone) => `${phone.slice(1)}@phone.invalid` },
    }),
  ],
})

let good = 0
let all = 0
function expectThat(name, holds, saw) {
  all++
  if (holds) good++
  else process.stdout.write(`✗ ${name} ${JSON.stringify(saw)}\n`)
}
async function post(path, body) {
  const headers = { 'content-type': 'application/json', origin: 'http://localhost:3000' }
  const url = `http://localhost:3000/api/auth/phone-number/${path}`
  const response = await auth.handler(
    new Request(url, { method: 'POST', headers, body: JSON.stringify(body) }),
  )
  return { status: response.status, json: await response.json().catch(() => null) }
}

const number = '+14155550132'
let answer = await post('send-otp', { phoneNumber: number })
expectThat('a code is sent', answer.status === 200, answer)
answer = await post('verify', { phoneNumber: number, code: '000001' })
expectThat('a wrong code is 400', answer.status === 400, answer)
answer = await post('verify', { phoneNumber: number, code: '424242' })
expectThat(
  'the right code signs in',
  answer.status === 200 && answer.json.user?.phoneNumberVerified === true,
  answer,
)
answer = await post('verify', { phoneNumber: number, code: '424242' })
expectThat('once', answer.status === 400, answer)
answer = await post('send-otp', { phoneNumber: '+1' })
expectThat('a bad number is 400', answer.status === 400, answer)
for (const [phone, code] of [
  [number, '12'],
  [number, 'abcdef'],
  ['+1', '123456'],
  ['nonsense', '123456'],
]) {
  answer = await post('verify', { phoneNumber: phone, code })
  expectThat(`the code ${code} for ${phone} is 400`, answer.status === 400, answer)
}
process.stdout.write(`${good} of ${all} hold\n`)
process.exit(good === all ? 0 : 1)
