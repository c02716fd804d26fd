import type { ApplicationPage } from '../../domain/model/application-page.ts'
import {
  isVerifiable,
  resendAfterMs,
  resendsMax,
  type Channel,
  type OtpRequest,
} from '../../domain/model/request.ts'
import type { MessageVariables } from '../../domain/model/message-variables.ts'
import type { OpenedSession } from '../../domain/otp/sessions.ts'
import type { CountryChoice } from './countries.ts'
import { markup, type Markup } from './markup.ts'
import { fill, type Language } from './language.ts'
import { formatPhone, maskPhone } from './phone-text.ts'
import { pageScript, pageStyle } from './assets.ts'

/** A message above a form. */
export type Notice = { text: string; field?: 'phone' | 'code' | undefined }

/** Proof of work that the script of the page solves before it sends the form again: see `AltchaChallenge`. */
export type PageChallenge = Readonly<Record<string, unknown>>

type FormView = {
  language: Language
  opened: OpenedSession
  now: number
  formToken: string
  notice?: Notice | undefined
}

type PhoneFormView = FormView & {
  countries: readonly CountryChoice[]
  /** Values of the fields: as the end user typed them, or the country that is selected at first. */
  typed: { phone: string; country: string | undefined }
  challenge?: PageChallenge | undefined
}

/** The payment that the end user confirms. A name may be written in the other direction than the page. */
function paymentList({ texts }: Language, { amount, payee }: MessageVariables): Markup {
  return markup`<dl><dt>${texts.amount}</dt><dd><bdi>${amount}</bdi></dd>
<dt>${texts.payee}</dt><dd><bdi>${payee}</bdi></dd></dl>
`
}

/** The step in which the end user enters a phone, or confirms the one of the session. */
export function phoneStep(view: PhoneFormView): Markup {
  const { language, opened, challenge } = view
  const { texts } = language
  const own = opened.session.phone
  const fields =
    own === null ? phoneFields(view) : markup`<p>${withPhone(texts.willSend, maskPhone(own))}</p>`
  const work =
    challenge && markup`<input type="hidden" name="challenge" data-work="${JSON.stringify(challenge)}">`
  return markup`${form(view, markup`${fields}${work}${primary('send', texts.send)}`)}${cancelForm(view)}`
}

function phoneFields({ language, countries, typed, notice }: PhoneFormView): Markup {
  const { texts, direction } = language
  // Right to left, the sign would stand after its number without a mark (UAX #9).
  const sign = direction === 'rtl' ? '\u200e+' : '+'
  return markup`<label for="country">${texts.country}</label>
<select id="country" name="country" autocomplete="country">${countries.map((choice) => countryOption(choice, sign, typed.country))}</select>
<label for="phone">${texts.phone}</label>
<input id="phone" name="phone" type="tel" dir="ltr" autocomplete="tel-national" maxlength="40" required value="${typed.phone}"${fault(notice, 'phone')} autofocus>`
}

/** The options of choices that are not selected. A page has 245 of them, and each language its own. */
const options = new WeakMap<CountryChoice, Markup>()

function countryOption(choice: CountryChoice, sign: string, selected: string | undefined): Markup {
  if (choice.code === selected) return writeOption(choice, sign, true)
  let option = options.get(choice)
  if (!option) options.set(choice, (option = writeOption(choice, sign, false)))
  return option
}

const writeOption = ({ code, name, callingCode, mask }: CountryChoice, sign: string, isSelected: boolean) =>
  markup`<option value=${code}${mask !== '' && markup` data-m="${mask}"`}${isSelected && markup` selected`}>${name} ${sign}${callingCode}`

/** Connects a field with the notice that says what is wrong with it. */
const fault = (notice: Notice | undefined, field: Notice['field']) =>
  notice?.field === field && markup` aria-invalid="true" aria-describedby="notice"`

/** The step in which the end user enters the code. */
export function codeStep(view: FormView & { request: OtpRequest }): Markup {
  const { language, request, opened, notice } = view
  const { texts } = language
  const canChange = opened.session.phone === null
  const shown = canChange ? formatPhone(request.phone) : maskPhone(request.phone)
  // No provider has taken the message yet.
  const state = request.deliveryStatus === 'queued' ? texts.willSend : texts.sent
  return markup`${form(
    view,
    markup`<p>${withPhone(state, shown)}</p>
<label for="code">${texts.code}</label>
<input id="code" name="code" dir="ltr" inputmode="numeric" autocomplete="one-time-code" maxlength="12" required${fault(notice, 'code')} autofocus>
${primary('verify', texts.verify)}`,
  )}
${request.resends < resendsMax && resendForm(view)}
${canChange && markup`<a class="button" href="?step=phone">${texts.change}</a>`}
${cancelForm(view)}`
}

/** Buttons that send the code once more. Without a script they are always on, and the server refuses what is too soon. */
function resendForm(view: FormView & { request: OtpRequest }): Markup {
  const { language, request, opened, now } = view
  const waitSeconds = Math.max(0, Math.ceil((request.sentAt + resendAfterMs - now) / 1000))
  const button = (value: string, text: string) =>
    markup`<button name="action" value="${value}" data-wait="${waitSeconds}">${text}</button>`
  const others = opened.otherChannels.map((channel) =>
    button(`resend:${channel}`, channelText(language, channel)),
  )
  return smallForm(view, [button('resend', language.texts.resend), ...others])
}

/** Names of channels are not translated, but for the call. */
const channelNames: Readonly<Partial<Record<Channel, string>>> = {
  sms: 'SMS',
  whatsapp: 'WhatsApp',
  telegram: 'Telegram',
  rcs: 'RCS',
}

const channelText = ({ texts }: Language, channel: Channel): string =>
  channel === 'voice' ? texts.call : fill(texts.via, { channel: channelNames[channel] ?? channel })

/** Numbers run left to right in every language. */
function withPhone(text: string, phone: string): Markup {
  const [before = '', after = ''] = text.split('{phone}')
  return markup`${before}<bdi dir="ltr">${phone}</bdi>${after}`
}

const form = (view: FormView, content: Markup) =>
  markup`<form method="post">${hiddenToken(view)}${content}</form>`

/** A form of its own, whose buttons need no phone and no code. */
const smallForm = (view: FormView, buttons: readonly Markup[]) =>
  markup`<form method="post" class="other">${hiddenToken(view)}${buttons}</form>`

const hiddenToken = ({ formToken }: FormView) =>
  markup`<input type="hidden" name="token" value="${formToken}">`

const primary = (action: string, text: string) =>
  markup`<button class="primary" name="action" value="${action}">${text}</button>`

const cancelForm = (view: FormView) =>
  smallForm(view, [markup`<button name="action" value="cancel">${view.language.texts.cancel}</button>`])

/** Step that the session is in: the code is asked for while its request can be verified. */
export const verifiableRequest = ({ request }: OpenedSession, now: number): OtpRequest | undefined =>
  request && isVerifiable(request, now) ? request : undefined

/** Writes a whole page. @param nonce that the content security policy allows */
export function writePage(
  language: Language,
  content: Markup,
  options: {
    nonce: string
    page?: Pick<ApplicationPage, 'logo' | 'colour'> | undefined
    name?: string | undefined
    notice?: Notice | undefined
    payment: MessageVariables | null
  },
): string {
  const { locale, direction, texts } = language
  const { nonce, page, name, notice, payment } = options
  const title = payment ? texts.payment : texts.title
  const colour = page?.colour && accent(page.colour)
  const logo = page?.logo && markup`<img src="${page.logo}" alt="">`
  const head = name !== undefined && markup`<header>${logo}<span>${name}</span></header>`
  return markup`<!doctype html>
<html lang="${locale}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>${title}${name !== undefined && ` – ${name}`}</title>
<style nonce="${nonce}">${pageStyle}${colour}</style>
</head>
<body>
<main id="page">${head}<h1>${title}</h1>
${payment && paymentList(language, payment)}<div role="alert">${notice && markup`<p id="notice">${notice.text}</p>`}</div>
${content}</main>
<script nonce="${nonce}">${pageScript}</script>
</body>
</html>`.markup
}

/** Sets the colour of the buttons, and of their text: black or white, whichever has the greater contrast (WCAG 2.2, 1.4.3). */
function accent(colour: string): Markup {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
  // Both contrasts are equal at 0.179.
  const onAccent = luminance > 0.179 ? '#000' : '#fff'
  return { markup: `:root{--accent:${colour};--on-accent:${onAccent}}` }
}
