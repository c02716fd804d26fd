import { Elysia } from 'elysia'
import type { AppAuth } from '../../domain/apps/authentication.ts'
import type { CallLimits } from '../../domain/limits/call-limits.ts'
import type { Clock } from '../../domain/model/clock.ts'
import { codePattern } from '../../domain/model/code.ts'
import { ServiceError } from '../../domain/model/errors.ts'
import type { Keys } from '../../domain/model/keys.ts'
import type { Random } from '../../domain/model/random.ts'
import { resendsMax } from '../../domain/model/request.ts'
import { isOpenSession, sessionReturnUrl, sessionStatus } from '../../domain/model/session.ts'
import type { OtpService } from '../../domain/otp/otp.ts'
import type { OpenedSession, SessionVisit } from '../../domain/otp/sessions.ts'
import { channels } from '../../shared/otp-values.ts'
import type { ClientContext, ReadClient } from '../client.ts'
import { isSafeMethod } from '../urls.ts'
import type { CallTurns } from '../call-turns.ts'
import { httpStatusByCode } from '../errors.ts'
import { readText } from '../json-body.ts'
import { addTrace } from '../require-application.ts'
import { guessCountry, listCountries } from './countries.ts'
import { createResponses, isFromScript, leave, redirectTo } from './responses.ts'
import { readDigits, readTypedPhone } from './typed.ts'
import { chooseLanguage, type Language } from './language.ts'
import { codeErrorOf, codeErrors, codeNotice, endedNotice, phoneNotice, type CodeError } from './notices.ts'
import { codeStep, verifiableRequest, phoneStep, type Notice, type PageChallenge } from './view.ts'
import { createVisitor, formToken, isFormToken, isOwnPost, readVisitor, type Visitor } from './visitor.ts'

export type PageServices = {
  appAuth: Pick<AppAuth, 'findActive'>
  callLimits: Pick<CallLimits, 'chargePagePost'>
  callTurns: Pick<CallTurns, 'begin'>
  clock: Clock
  keys: Pick<Keys, 'page'>
  otp: Pick<OtpService, 'sessions'>
  publicUrl(): string
  random: Random
  readClient: ReadClient
}

/** A request for the page of an open session. */
type Call = {
  incoming: ClientContext
  opened: OpenedSession
  visit: SessionVisit
  visitor: Visitor
  language: Language
  /** Last part of the page's path. */
  token: string
  now: number
}

const codeFormat = new RegExp(codePattern)

type Context = ClientContext & { params: { token: string } }

/**
 * The ready page: two steps as plain HTML forms. Its script shows the same answers without a reload. What a step does are the
 * operations of the API; the page adds only who asks: the address of the connection, and the device of its cookie.
 */
export function pageRoutes(services: PageServices) {
  const { sessions } = services.otp
  const { respond, endPage } = createResponses(services)
  const hidden = { detail: { hide: true } }

  return new Elysia({ prefix: '/verify' })
    .get('/:token', (context) => answer(context, show), hidden)
    .post('/:token', (context) => answer(context, act), { ...hidden, parse: 'none' })

  /** Opens the session, and answers for one that has ended. */
  async function answer(context: Context, respond: (call: Call) => Promise<Response>): Promise<Response> {
    const { request, params } = context
    const { headers } = request
    const visitor =
      readVisitor(services.keys, headers.get('cookie')) ?? createVisitor(services.keys, services.random)
    const found = await sessions.findByToken(params.token)
    // Anyone with a link can ask for its page at any rate, and writing it is most of the work.
    if (found && isSafeMethod(request.method))
      await services.callTurns.begin(request, `page ${found.developerId}`)
    const opened = found && (await sessions.open(found, visitor.deviceId))
    const now = services.clock.now()
    const language = chooseLanguage(headers.get('accept-language'), {
      session: opened?.session.locale ?? null,
      application: opened?.application.defaultLocale ?? null,
    })
    if (!opened) return endPage(language, 404, language.texts.badLink)
    const { session, page, application } = opened
    // Checked again: an origin that the developer has removed since gets no browser any more.
    if (!page.returnOrigins.includes(new URL(session.returnUrl).origin))
      return endPage(language, 404, language.texts.badLink)
    const isOpen = isOpenSession(session, now)
    const status = sessionStatus(session, now)
    if (!isOpen && status !== 'expired') {
      // Another browser than that which verified the phone learns no state, by which backends tell visitors apart.
      const isElsewhere = status === 'verified' && opened.request === undefined
      return leave(request, sessionReturnUrl(session, isElsewhere ? null : session.state))
    }
    if (!isOpen || !page.enabled)
      return endPage(
        language,
        isOpen ? 403 : 410,
        isOpen ? language.texts.failed : language.texts.badLink,
        opened,
      )
    const active = await services.appAuth.findActive(application.id).catch(asRefusal)
    if (active instanceof ServiceError) return endPage(language, 403, language.texts.failed, opened)
    return respond({
      incoming: context,
      opened,
      visit: { application: addTrace(active, request), session, request: opened.request },
      visitor,
      language,
      token: params.token,
      now,
    })
  }

  /** Shows the step that the session is in. */
  async function show(call: Call): Promise<Response> {
    const { opened, language, now, incoming } = call
    const query = new URL(incoming.request.url).searchParams
    const request = verifiableRequest(opened, now)
    const error = codeErrors.find((one) => one === query.get('error'))
    const wait = Number(/^\d{1,6}$/.exec(query.get('wait') ?? '')?.[0] ?? 60)
    const notice = error && codeNotice(language, error, request, wait)
    if (!request) return showPhoneStep(call, 200, { notice: notice ?? endedNotice(language, opened.request) })
    if (query.get('step') === 'phone') return showPhoneStep(call, 200, {})
    return respond(language, 200, codeStep({ ...formView(call, notice), request }), { ...call, notice })
  }

  /** Does what a form asks for. */
  async function act(call: Call): Promise<Response> {
    const { incoming, visitor, opened, language } = call
    const { request } = incoming
    if (!isOwnPost(request.headers, services.publicUrl()))
      return endPage(language, 403, language.texts.failed)
    const fields = new URLSearchParams(await readText(request))
    const isOwnForm = isFormToken(services.keys, visitor, opened.session.id, fields.get('token') ?? '')
    // Also without cookies: the page is shown again, which sets one.
    if (!isOwnForm) return redirectTo(call, '?error=failed')
    try {
      services.callLimits.chargePagePost(opened.session)
    } catch (thrown) {
      return redirectToError(call, asRefusal(thrown))
    }
    const [action, channel] = (fields.get('action') ?? '').split(':')
    if (action === 'send') return send(call, fields)
    if (action === 'cancel') return run(call, () => sessions.cancel(call.visit))
    // Refused here, because the operations charge calls for a code that has ended.
    const pending = verifiableRequest(opened, call.now)
    if (!pending) return redirectTo(call, '?error=ended')
    if (action === 'verify') return verify(call, readDigits(fields.get('code')))
    if (action !== 'resend' || pending.resends >= resendsMax) return redirectTo(call, '?error=failed')
    const chosen = channels.find((one) => one === channel)
    return run(call, () => sessions.resend(call.visit, chosen))
  }

  /** Checks a code. One that is not complete costs no attempt, as in the API. */
  function verify(call: Call, code: string): Promise<Response> | Response {
    if (!codeFormat.test(code)) return redirectTo(call, '?error=wrong')
    return run(call, () => sessions.verify(call.visit, code))
  }

  /** Sends a code. A phone that is refused is shown again, so that it can be corrected. */
  async function send(call: Call, fields: URLSearchParams): Promise<Response> {
    const { visit, visitor, incoming, language } = call
    const ip = services.readClient(incoming).origin.ip
    const country = fields.get('country') ?? undefined
    const phone = readTypedPhone(fields.get('phone'))
    const challenge = fields.get('challenge') || undefined
    try {
      await sessions.send(visit, {
        phone,
        ...(phone.startsWith('+') ? {} : { country }),
        locale: language.locale,
        deviceId: visitor.deviceId,
        ...(ip !== null && { clientIp: ip }),
        challenge,
      })
    } catch (thrown) {
      const error = asRefusal(thrown)
      if (error.reason === 'SESSION_CLOSED') return redirectTo(call, '')
      const work =
        error.code === 'CHALLENGE_REQUIRED' && error.metadata?.['kind'] === 'altcha' && error.metadata
      const { checking, needsScript } = language.texts
      const workText = isFromScript(incoming.request) ? checking : needsScript
      return showPhoneStep(call, httpStatusByCode[error.code], {
        notice: work ? { text: workText } : phoneNotice(language, error),
        typed: { phone: fields.get('phone') ?? '', country },
        challenge: work || undefined,
      })
    }
    return redirectTo(call, '')
  }

  /** Runs an operation, and shows the page of what it has become. */
  function run(call: Call, work: () => Promise<unknown>): Promise<Response> {
    return work().then(
      () => redirectTo(call, ''),
      (thrown: unknown) => redirectToError(call, asRefusal(thrown)),
    )
  }

  function redirectToError(call: Call, error: ServiceError): Response {
    const name: CodeError = codeErrorOf(error)
    const wait = error.retryAfterSeconds === undefined ? '' : `&wait=${error.retryAfterSeconds}`
    return redirectTo(call, error.reason === 'SESSION_CLOSED' ? '' : `?error=${name}${wait}`)
  }

  function showPhoneStep(
    call: Call,
    status: number,
    shown: {
      notice?: Notice | undefined
      typed?: { phone: string; country: string | undefined }
      challenge?: PageChallenge | undefined
    },
  ): Response {
    const { opened, language, incoming } = call
    const { countries: only, defaultCountry } = opened.application
    const acceptLanguage = incoming.request.headers.get('accept-language')
    const { locale } = language
    const countries = listCountries(locale, only)
    const guessed = guessCountry(countries, { defaultCountry, acceptLanguage, locale })
    const { notice, challenge, typed = { phone: '', country: guessed } } = shown
    const step = phoneStep({ ...formView(call, notice), countries, typed, challenge })
    return respond(language, status, step, { ...call, notice })
  }

  function formView({ language, opened, now, visitor }: Call, notice: Notice | undefined) {
    const { id } = opened.session
    return { language, opened, now, notice, formToken: formToken(services.keys, visitor, id) }
  }
}

/** @throws anything that is no refusal */
function asRefusal(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown
  throw thrown
}
