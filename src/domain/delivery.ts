import type { Channel, OtpRequest } from './otp-requests.ts'

/** The provider of what never leaves otpd: such a message lies in a developer's inbox. */
export const inboxProvider = 'inbox'

export type Destination = {
  environment: 'live' | 'test'
  /** A virtual number of a developer. */
  isVirtual: boolean
  country: string | null
  channel: Channel
}

export type Delivery = {
  /** The name of the provider that carries messages to this destination, or `inbox`. */
  route(destination: Destination): string
  /** The message of a code, as the phone shows it. */
  render(request: OtpRequest, code: string): string
}
