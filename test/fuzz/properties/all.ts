import { codeProperties } from './codes.ts'
import { configProperties } from './config.ts'
import { networkProperties } from './network.ts'
import { guardProperties } from './guard.ts'
import { httpProperties } from './http.ts'
import { listProperties } from './lists.ts'
import { maskingProperties } from './masking.ts'
import { otpLifecycleProperties } from './otp-lifecycle.ts'
import { overlayProperties } from './overlay.ts'
import { phoneProperties } from './phones.ts'
import { rateLimitProperties } from './rate-limit.ts'
import { textProperties } from './texts.ts'
import { webhookProperties } from './webhooks.ts'

export const properties = [
  ...rateLimitProperties,
  ...otpLifecycleProperties,
  ...overlayProperties,
  ...httpProperties,
  ...guardProperties,
  ...networkProperties,
  ...listProperties,
  ...phoneProperties,
  ...textProperties,
  ...maskingProperties,
  ...codeProperties,
  ...webhookProperties,
  ...configProperties,
]
