import type { Random } from '../../domain/model/random.ts'
import { sessionReturnUrl } from '../../domain/model/session.ts'
import type { OpenedSession } from '../../domain/otp/sessions.ts'
import { markup, type Markup } from './markup.ts'
import type { Language } from './language.ts'
import { writePage, type Notice } from './view.ts'
import { visitorCookie, type Visitor } from './visitor.ts'

type Shown = { opened?: OpenedSession | undefined; visitor?: Visitor; notice?: Notice | undefined }

/** Creates the answers of the page, with the headers that keep it to itself. */
export function createResponses({ random, publicUrl }: { random: Random; publicUrl(): string }) {
  return { respond, endPage }

  /** Answers for a session that cannot go on, with the way back. */
  function endPage(language: Language, status: number, text: string, opened?: OpenedSession): Response {
    const back =
      opened &&
      markup`<a class="button" href="${sessionReturnUrl(opened.session)}">${language.texts.back}</a>`
    return respond(language, status, markup`${back}`, { opened, notice: { text } })
  }

  function respond(language: Language, status: number, content: Markup, shown: Shown): Response {
    const { opened, visitor, notice } = shown
    const bytes = new Uint8Array(16)
    random(bytes)
    const nonce = Buffer.from(bytes).toString('base64url')
    const headers = new Headers({
      'content-type': 'text/html; charset=utf-8',
      'content-language': language.locale,
      'content-security-policy': writePolicy(nonce, opened?.session.returnUrl),
      // The link is a secret. Forms of this page must have an origin all the same.
      'referrer-policy': 'same-origin',
      vary: 'Accept-Language, Cookie',
    })
    const isHttps = publicUrl().startsWith('https:')
    if (visitor) headers.set('set-cookie', visitorCookie(visitor, isHttps))
    const name = opened && (opened.page.name ?? opened.application.name)
    const payment = opened?.session.variables ?? null
    const body = writePage(language, content, { nonce, page: opened?.page, name, notice, payment })
    return new Response(body, { status, headers })
  }
}

/** Nothing but this page itself. A form may lead to where the session returns, which browsers check after redirects too. */
function writePolicy(nonce: string, returnUrl: string | undefined): string {
  const returnOrigin = returnUrl === undefined ? '' : ` ${new URL(returnUrl).origin}`
  return [
    "default-src 'none'",
    `style-src 'nonce-${nonce}'`,
    `script-src 'nonce-${nonce}'`,
    'img-src data:',
    "connect-src 'self'",
    `form-action 'self'${returnOrigin}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

/** Goes to another page of the session, relative to this one: a proxy may serve it below a path of its own. */
export const redirectTo = ({ token }: { token: string }, query: string): Response =>
  new Response(null, { status: 303, headers: { location: `${token}${query}` } })

/** Tells whether the script of the page made a request, which shows the answer without a reload. */
export const isFromScript = (request: Request): boolean => request.headers.has('otpd-page')

/** Sends the browser to the application. The script of the page, which cannot follow a redirect to there, is told. */
export const leave = (request: Request, url: string): Response =>
  isFromScript(request)
    ? new Response(null, { status: 204, headers: { 'otpd-location': url } })
    : new Response(null, { status: 303, headers: { location: url, 'referrer-policy': 'no-referrer' } })
