import type { Delivery } from '../../domain/model/delivery.ts'
import {
  minutesLeft,
  type MessageSettings,
  type MessageTemplates,
} from '../../domain/model/message-settings.ts'
import type { OtpRequest } from '../../domain/model/request.ts'
import { renderMessage, type Message } from './message.ts'

export type MessageRenderer = ReturnType<typeof createMessageRenderer>

/** How messages are worded, with the operator's own texts before those that otpd brings. */
export function createMessageRenderer(templates: MessageTemplates = {}) {
  /** @param application null once it is deleted @param sentAtMs for the minutes that the message tells */
  const compose = (
    request: OtpRequest,
    code: string,
    application: MessageSettings | null,
    sentAtMs: number,
  ): Message =>
    renderMessage(
      {
        code,
        locale: request.locale,
        country: request.country,
        applicationName: application?.name ?? null,
        applicationDefaultLocale: application?.defaultLocale ?? null,
        minutesLeft: minutesLeft(request.expiresAt, sentAtMs),
        webOtpDomain: application?.webOtpDomain ?? null,
        androidAppHash: application?.androidAppHash ?? null,
      },
      templates,
    )
  const render: Delivery['render'] = (...message) => compose(...message).text
  return { compose, render }
}
