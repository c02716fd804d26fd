import type { connectAsApplication } from '../../client/credentials.ts'
import type { OtpRequest } from '../../client/resources.ts'
import { required, type Console, type Dialog } from '../console-context.ts'

type ApplicationConnection = ReturnType<typeof connectAsApplication>
type Toast = Console['toast']

/** Asks for a phone number and sends it a code. */
export const sendDialog = (
  { api, credentials }: ApplicationConnection,
  { toast, open }: { toast: Toast; open(id: string): void },
): Dialog => ({
  kind: 'form',
  title: 'Send a code',
  lines: ['Sent by the application in OTPD_CLIENT_ID.'],
  fields: [
    { name: 'phone', label: 'phone', initial: '+', check: (value) => (value === '+' ? 'required' : null) },
  ],
  verb: 'send',
  async submit({ phone = '' }) {
    const body = { phone: phone.trim() }
    const { data } = await api.asApplication('POST', '/v1/otp/send', credentials, { body })
    toast('code sent', 'good')
    open(data.requestId)
  },
})

/** Asks for the code of a request and checks it. */
export const verifyDialog = (
  { api, credentials }: ApplicationConnection,
  { id }: OtpRequest,
  { phone, toast }: { phone: string; toast: Toast },
): Dialog => ({
  kind: 'form',
  title: 'Verify a code',
  lines: [`The code that was sent to ${phone}.`],
  fields: [{ name: 'code', label: 'code', check: required }],
  verb: 'verify',
  async submit({ code = '' }) {
    const body = { requestId: id, code: code.trim() }
    await api.asApplication('POST', '/v1/otp/verify', credentials, { body })
    toast(`${phone} is verified`, 'good')
  },
})

/** Sends the same code again. */
export const resendDialog = (
  { api, credentials }: ApplicationConnection,
  { id }: OtpRequest,
  { phone, toast }: { phone: string; toast: Toast },
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
  { api, credentials }: ApplicationConnection,
  { id }: OtpRequest,
  { phone, toast }: { phone: string; toast: Toast },
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
