import { codeProperties } from './codes.ts'
import { configProperties } from './config.ts'
import { facadeProperties } from './facades.ts'
import { networkProperties } from './network.ts'
import { guardProperties } from './guard.ts'
import { httpProperties } from './http.ts'
import { maskingProperties } from './masking.ts'
import { otpLifecycleProperties } from './otp-lifecycle.ts'
import { phoneProperties } from './phones.ts'
import { rateLimitProperties } from './rate-limit.ts'
import { textProperties } from './texts.ts'
import { webhookProperties } from './webhooks.ts'

export const properties = [
  ...rateLimitProperties,
  ...otpLifecycleProperties,
  ...httpProperties,
  ...guardProperties,
  ...networkProperties,
  ...phoneProperties,
  ...textProperties,
  ...maskingProperties,
  ...codeProperties,
  ...webhookProperties,
  ...configProperties,
  ...facadeProperties,
]
