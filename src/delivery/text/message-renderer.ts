import type { Delivery } from '../../domain/model/delivery.ts'
import {
  minutesLeft,
  type MessageSettings,
  type MessageTemplates,
} from '../../domain/model/message-settings.ts'
import type { OtpRequest } from '../../domain/model/request.ts'
import { renderIn, renderMessage, type Message } from './message.ts'

export type MessageRenderer = ReturnType<typeof createMessageRenderer>

/** Renders messages; the operator's templates take precedence over the built-in texts. */
export function createMessageRenderer(templates: MessageTemplates = {}) {
  /**
   * @param application null once it is deleted
   * @param sentAtMs time of sending, for the minutes in the text
   */
  const compose = (
    request: Pick<OtpRequest, 'locale' | 'country' | 'ownText' | 'template' | 'expiresAt'>,
    code: string,
    application: MessageSettings | null,
    sentAtMs: number,
  ): Message => {
    const { ownText, template } = request
    const input = {
      code,
      locale: request.locale,
      country: request.country,
      applicationName: application?.name ?? null,
      applicationDefaultLocale: application?.defaultLocale ?? null,
      minutesLeft: minutesLeft(request.expiresAt, sentAtMs),
      webOtpDomain: application?.webOtpDomain ?? null,
      androidAppHash: application?.androidAppHash ?? null,
    }
    if (template) {
      const { locale, text, variables } = template
      return renderIn(locale, { ...input, variables }, { [locale]: { sms: text } })
    }
    const message = renderMessage(input, templates)
    return ownText === null ? message : { ...message, text: ownText.replaceAll('{{code}}', code) }
  }
  const render: Delivery['render'] = (...message) => compose(...message).text
  return { compose, render }
}
