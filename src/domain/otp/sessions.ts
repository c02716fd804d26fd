import { readRefusal } from '../apps/authentication.ts'
import { eventChange } from '../log/changes.ts'
import type { ApplicationPage } from '../model/application-page.ts'
import type { Application, CallingApplication } from '../model/application.ts'
import { toDestination } from '../model/delivery.ts'
import { noToken } from '../guard/challenge.ts'
import { notFound } from '../model/errors.ts'
import { hashContexts } from '../model/context.ts'
import { isId } from '../model/ids.ts'
import { isRejected, reject, unwrap, type Rejected } from '../model/rejected.ts'
import { isVerifiable, type Channel, type OtpRequest } from '../model/request.ts'
import { isOpenSession, sessionSendsMax, type OtpSession } from '../model/session.ts'
import { hashToken } from '../model/tokens.ts'
import type { Change, Decision, Operation, Preload, Rows } from '../store/operation.ts'
import { closeRequest, readOwnRequest } from './lifecycle.ts'
import type { OtpNeeds, RequestOwner } from './needs.ts'
import { chooseChannels, isTooSoon, type SendInput } from './new-message.ts'
import type { createOtpResend } from './resend.ts'
import type { createOtpSend } from './send.ts'
import {
  completeSend,
  refusalDecision,
  type SendDecision,
  type Replay,
  type SendResult,
} from './send-result.ts'
import { createSession, type NewSession } from './session-creation.ts'
import { sendsExhausted, sessionClosed } from './session-refusals.ts'
import { createRequestFinder, type RequestFinder } from './target.ts'
import type { CheckResult, createOtpVerify } from './verify.ts'

/** A session with its newest request. */
export type SessionView = { session: OtpSession; request: OtpRequest | undefined }

/** A session with everything that its page shows. `request` is undefined in a browser that did not send it. */
export type OpenedSession = SessionView & {
  page: ApplicationPage
  application: Pick<Application, 'id' | 'name' | 'defaultLocale' | 'defaultCountry' | 'countries'>
  /** Other channels on which the code of the request can be sent once more. */
  otherChannels: readonly Channel[]
}

/** An end user at the page of a session, as it was when the call began. `request` is that of `OpenedSession`. */
export type SessionVisit = { application: CallingApplication } & SessionView

/** Base64url of 256 bits. */
const tokenPattern = /^[A-Za-z0-9_-]{43}$/

/** Operations that sessions are made of. */
type Operations = Pick<ReturnType<typeof createOtpSend>, 'readCall' | 'sendOperation'> &
  Pick<ReturnType<typeof createOtpResend>, 'resendOperation'> &
  Pick<ReturnType<typeof createOtpVerify>, 'checkOperation'>

/**
 * Sessions of the ready page: what an end user does there is done with the operations of the API, each together with the
 * session in one transaction that holds its row. So a session has one success under any concurrency.
 */
export function createSessions(needs: OtpNeeds, operations: Operations) {
  const { store, newId } = needs

  return { create, get, findByToken, open, send, resend, verify, cancel }

  /** Creates a session, as `createSession` says. */
  function create(application: CallingApplication, input: NewSession) {
    return createSession(needs, application, input)
  }

  /** Finds a session with its request. @throws NOT_FOUND */
  async function get(owner: RequestOwner, id: string): Promise<SessionView> {
    const session = isId('ses', id) ? await store.read.otpSessions.find(id) : undefined
    const isOwned =
      'appId' in owner ? session?.appId === owner.appId : session?.developerId === owner.developerId
    if (!session || !isOwned) throw notFound('session')
    return withRequest(session)
  }

  /**
   * Finds the session of a link. Undefined for a token that is forged or no longer kept. Reads only, so that guessing spends
   * nothing.
   */
  async function findByToken(token: string): Promise<OtpSession | undefined> {
    return tokenPattern.test(token) ? store.read.otpSessions.findByToken(hashToken(token)) : undefined
  }

  /**
   * Reads everything that the page of a session shows. Undefined without its application.
   *
   * A code is verified in the browser that it was sent from. Otherwise an attacker could send it, and pass the link to the
   * owner of the phone.
   */
  async function open(session: OtpSession, deviceId: string): Promise<OpenedSession | undefined> {
    const { applications, pages } = store.read
    const application = await applications.find(session.developerId, session.appId)
    if (!application) return undefined
    const newest = (await withRequest(session)).request
    const [device = ''] = hashContexts(needs.keys, session.developerId, { clientIp: null, deviceId })
    const request = newest?.contexts.includes(device) ? newest : undefined
    const routes = request && needs.delivery.routesFor(toDestination(request))
    const channels = routes && chooseChannels(routes, {}, [], request.template)
    const otherChannels = channels?.filter((channel) => channel !== request?.channel) ?? []
    return { session, request, page: await pages.find(session.appId), application, otherChannels }
  }

  async function withRequest(session: OtpSession): Promise<SessionView> {
    const { requestId } = session
    return { session, request: requestId === null ? undefined : await store.read.otpRequests.find(requestId) }
  }

  /**
   * Sends a code to a phone; the code that the session sent before is canceled in the same transaction. Does nothing if this
   * browser sent one to the same phone less than 30 seconds ago: a form that is posted twice, as by a double click, would
   * send two messages, and the code of the first would be wrong.
   *
   * @param input.phone is not used if the session is for one phone
   * @throws as `OtpService.send`; CONFLICT (SESSION_CLOSED)
   */
  async function send(visit: SessionVisit, input: SendInput): Promise<SendResult | undefined> {
    const { application, session, request } = visit
    const { phone: own, template, variables } = session
    const call = await operations.readCall(application, {
      ...input,
      ...(own !== null && { phone: own }),
      template: template ?? undefined,
      variables: variables ?? undefined,
      metadata: { sessionId: session.id },
    })
    const now = needs.clock.now()
    const isRepeated = request?.phone === call.phone.phone && isVerifiable(request, now)
    if (isRepeated && isTooSoon(request, now)) return undefined
    return sendCounted(visit, operations.sendOperation(call, findVerifiable(application, session)))
  }

  /**
   * Sends the code of the session's request once more.
   *
   * @throws as `OtpService.resend`; CONFLICT (SESSION_CLOSED)
   */
  function resend(visit: SessionVisit, channel: Channel | undefined): Promise<SendResult> {
    const { application, session } = visit
    const finder = createRequestFinder(needs, application, { requestId: session.requestId ?? '' })
    return sendCounted(
      visit,
      operations.resendOperation({ application, finder, choice: { channel }, challenge: noToken }),
    )
  }

  /** Counts a send or resend for the session, in the same transaction. */
  async function sendCounted(
    { application, session }: SessionVisit,
    send: Operation<SendDecision | Replay>,
  ): Promise<SendResult> {
    const outcome = await store.decide({
      ...send,
      preload: withSession(send.preload, session),
      decide(rows) {
        const current = readCurrent(rows, session)
        if (!current) return refusalDecision(reject(sessionClosed()))
        if (current.sends >= sessionSendsMax)
          return refusalDecision(reject(sendsExhausted(current, rows.now())))
        const decision = send.decide(rows)
        // Refused without a charge, such as for the phone's budget.
        if (decision.changes.length === 0) return decision
        const { result } = decision.result
        const sent =
          !isRejected(result) && 'id' in result && ({ status: 'sent', requestId: result.id } as const)
        const counted: OtpSession = { ...current, sends: current.sends + 1, ...sent }
        return {
          ...decision,
          changes: [...decision.changes, { kind: 'session', session: counted, isNew: false }],
        }
      },
    })
    return completeSend(needs, application, undefined, outcome)
  }

  /**
   * Checks the code of the session's request. Marks both verified in one transaction.
   *
   * @throws as `OtpService.verify`; CONFLICT (SESSION_CLOSED)
   */
  async function verify({ application, session }: SessionVisit, code: string): Promise<OtpRequest> {
    const { requestId, variables } = session
    const target = { requestId: requestId ?? '' }
    const check = operations.checkOperation(application, target, { code, variables: variables ?? undefined })
    const finder = findVerifiable(application, session)
    const { result } = await store.decide<CheckResult>({
      ...check,
      preload: withSession(check.preload, session),
      decide(rows) {
        const current = readCurrent(rows, session)
        // Before the rate is charged: forms that were posted at once all found the request pending.
        if (!current || !finder.find(rows, rows.now())) {
          const closed = { rate: undefined, request: undefined, result: reject(sessionClosed()) }
          return { result: closed, changes: [] }
        }
        const decision = check.decide(rows)
        const { result: request } = decision.result
        if (isRejected(request)) return decision
        const changes = markVerified(current, request, rows)
        return { ...decision, changes: [...decision.changes, ...changes] }
      },
    })
    const request = unwrap(result)
    needs.onEnded(request)
    return request
  }

  function markVerified(session: OtpSession, request: OtpRequest, rows: Rows): Change[] {
    const subscribers = rows.subscribers(session.appId)
    const { id: sessionId } = session
    return [
      { kind: 'session', session: { ...session, status: 'verified' }, isNew: false },
      eventChange(newId, 'session.verified', request, subscribers, rows.now(), {
        detail: sessionId,
        sessionId,
      }),
    ]
  }

  /** Ends a session without success, and cancels its request. Does nothing if the session has ended. */
  async function cancel({ application, session }: SessionVisit): Promise<void> {
    const finder = findVerifiable(application, session)
    const canceled = await store.decide<OtpRequest | Rejected | undefined>({
      preload: {
        first: (rows) => ({
          application,
          ...finder.nameRows(rows),
          session: session.id,
          subscribers: application.id,
        }),
      },
      decide(rows): Decision<OtpRequest | Rejected | undefined> {
        const refusal = readRefusal(rows, application)
        if (refusal) return { result: refusal, changes: [] }
        const current = readCurrent(rows, session)
        if (!current) return { result: undefined, changes: [] }
        const ended: Change = { kind: 'session', session: { ...current, status: 'canceled' }, isNew: false }
        const now = rows.now()
        const request = finder.find(rows, now)
        if (!request) return { result: undefined, changes: [ended] }
        const closable = { request, subscribers: rows.subscribers(application.id) }
        const { result, changes } = closeRequest(newId, closable, { status: 'canceled' }, now)
        return { result, changes: [ended, ...changes] }
      },
    })
    const request = unwrap(canceled)
    if (request) needs.onEnded(request)
  }

  /**
   * Reads the row of a session, if it is open and its request is the one that the call was made for. Otherwise another
   * window has moved it on.
   */
  function readCurrent(rows: Rows, session: OtpSession): OtpSession | undefined {
    const current = rows.session(session.id)
    const isCurrent = current?.requestId === session.requestId && isOpenSession(current, rows.now())
    return isCurrent ? current : undefined
  }

  /** Finds the request of a session while it can be verified. */
  function findVerifiable(application: CallingApplication, { requestId }: OtpSession): RequestFinder {
    const finder = createRequestFinder(needs, application, { requestId: requestId ?? '' })
    return {
      ...finder,
      find(rows, now) {
        const request = requestId === null ? undefined : readOwnRequest(rows, application, requestId)
        return request && isVerifiable(request, now) ? request : undefined
      },
    }
  }
}

/** Names a session with the rows of a call that it makes. */
const withSession = (preload: Preload, { id }: OtpSession): Preload => ({
  ...preload,
  first: (rows) => ({ ...preload.first(rows), session: id }),
})
