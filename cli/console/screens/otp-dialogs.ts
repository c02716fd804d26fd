import type { AppCredentials } from '../../client/api.ts'
import type { Application, OtpRequest, SentOtp } from '../../client/resources.ts'
import { required, type Console, type Dialog } from '../console-context.ts'

/** Says where the message of a live application goes: the console does not know the routes. */
export const liveText =
  'This application is live: the message goes to the phone, or to the inbox if no provider is configured.'

type Needs = Pick<Console, 'api' | 'toast' | 'openDialog'>

/**
 * Asks for a phone number and sends it a code; for a live application, which reaches people and may cost money, only
 * after a confirmation.
 *
 * @param onSent called with the request, and with its code if the application is a test application
 */
export const sendDialog = (
  needs: Needs,
  app: Pick<Application, 'name' | 'environment'>,
  credentials: AppCredentials,
  onSent: (sent: SentOtp) => void,
): Dialog => ({
  kind: 'form',
  title: `Send a code as ${app.name}`,
  lines: [
    app.environment === 'live'
      ? liveText
      : 'A test application sends nothing to the phone: the code appears here.',
  ],
  fields: [
    { name: 'phone', label: 'phone', initial: '+', check: (value) => (value === '+' ? 'required' : null) },
  ],
  verb: app.environment === 'live' ? 'continue' : 'send',
  async submit({ phone = '' }) {
    // The international prefix, pasted after the `+`.
    const number = phone.replace(/^\+\s*00/, '+')
    const send = () => sendCode(needs, credentials, number, onSent)
    if (app.environment === 'test') return send()
    needs.openDialog({
      kind: 'form',
      title: 'Send a real message?',
      lines: [`To ${number}, by the live application ${app.name}. It may cost money.`],
      fields: [],
      verb: 'send',
      submit: send,
    })
  },
})

async function sendCode(
  { api, toast }: Needs,
  credentials: AppCredentials,
  phone: string,
  onSent: (sent: SentOtp) => void,
) {
  const { data } = await api.asApplication('POST', '/v1/otp/send', credentials, { body: { phone } })
  toast('code sent', 'good')
  onSent(data)
}

/**
 * Asks for the code of a request and checks it.
 *
 * @param phone as it is shown
 * @param code the code if it is known, already filled in
 */
export const verifyDialog = (
  { api, toast }: Needs,
  credentials: AppCredentials,
  { id }: OtpRequest,
  { phone, code = '' }: { phone: string; code?: string | undefined },
): Dialog => ({
  kind: 'form',
  title: 'Verify a code',
  lines: [`The code that was sent to ${phone}.`],
  fields: [{ name: 'code', label: 'code', initial: code, check: required }],
  verb: 'verify',
  async submit({ code: typedCode = '' }) {
    const body = { requestId: id, code: typedCode }
    await api.asApplication('POST', '/v1/otp/verify', credentials, { body })
    toast(`${phone} is verified`, 'good')
  },
})

/** Sends the same code again. */
export const resendDialog = (
  { api, toast }: Needs,
  credentials: AppCredentials,
  { id }: OtpRequest,
  { phone }: { phone: string },
): Dialog => ({
  kind: 'form',
  title: 'Resend the code',
  lines: [`Sends the same code to ${phone} again. It expires at the same time as before.`],
  fields: [],
  verb: 'send',
  async submit() {
    await api.asApplication('POST', '/v1/otp/resend', credentials, { body: { requestId: id } })
    toast('code resent', 'good')
  },
})

/** Cancels the pending code. */
export const cancelDialog = (
  { api, toast }: Needs,
  credentials: AppCredentials,
  { id }: OtpRequest,
  { phone }: { phone: string },
): Dialog => ({
  kind: 'confirm',
  title: 'Cancel a code',
  lines: [`The code that was sent to ${phone} stops working immediately.`],
  confirmText: 'cancel',
  verb: 'cancel the code',
  async submit() {
    await api.asApplication('POST', '/v1/otp/cancel', credentials, { body: { requestId: id } })
    toast('code canceled', 'good')
  },
})
