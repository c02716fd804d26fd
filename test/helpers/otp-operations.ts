import { createFirebaseProofs } from '../../src/auth/firebase-proofs.ts'
import { createChallenges } from '../../src/domain/guard/challenge.ts'
import { createGuard } from '../../src/domain/guard/guard.ts'
import { deriveStoredCode } from '../../src/domain/model/code.ts'
import type { CallingApplication } from '../../src/domain/model/application.ts'
import type { Clock } from '../../src/domain/model/clock.ts'
import type { Delivery, DispatchResult, Receipt } from '../../src/domain/model/delivery.ts'
import { createIds, type NewId } from '../../src/domain/model/ids.ts'
import type { MessageClaim } from '../../src/domain/model/message.ts'
import type { MessageVariables } from '../../src/domain/model/message-variables.ts'
import type { Plans } from '../../src/domain/model/plans.ts'
import type { Random } from '../../src/domain/model/random.ts'
import { createMessageAttempts, type PendingResult } from '../../src/domain/otp/message-attempts.ts'
import { createDeliveryReceipts } from '../../src/domain/otp/delivery-receipts.ts'
import { createOtpService } from '../../src/domain/otp/otp.ts'
import { createRefusedSends } from '../../src/domain/otp/refused-sends.ts'
import { revertGuardCounts } from '../../src/domain/otp/guard-counts.ts'
import type { Store } from '../../src/domain/store/store.ts'
import { guardOff } from './guard.ts'
import { testKeys } from './keys.ts'
import { unlimitedPlans } from './plans.ts'

export type OtpOperations = ReturnType<typeof createOtpOperations>

/** Provider that every message of these operations goes to, and the one that it fails over to. */
const providers = ['main', 'spare'] as const

const random: Random = (bytes) => crypto.getRandomValues(bytes)

/** Answer of a provider that takes the message. */
export const accepted = (messageId: string | null, provider: string = providers[0]): DispatchResult => ({
  kind: 'accepted',
  candidate: { channel: 'sms', provider },
  messageId,
})

const failure = { class: 'unreachable', permanent: false, at: 'route', providerCode: null } as const
export const refused: DispatchResult = { kind: 'refused', failure }
export const deferred: Extract<DispatchResult, { kind: 'deferred' }> = {
  kind: 'deferred',
  failure,
  excluded: [],
  waitMs: 0,
}
export const uncertain: DispatchResult = {
  kind: 'uncertain',
  candidate: { channel: 'sms', provider: providers[0] },
  failure,
}

export const receipt = (status: Receipt['status'], messageId: string): Receipt => ({
  messageId,
  requestId: null,
  status,
  failure: status === 'undelivered' ? failure : null,
})

/**
 * Creates the operations on OTP requests on a real store. Messages stay in the outbox, leased for their first attempt,
 * until the test makes an attempt, and says what the provider answers.
 */
export function createOtpOperations(needs: {
  store: Store
  clock: Clock
  newId?: NewId
  random?: Random
  plans?: Plans
  owner?: string
}) {
  const { store, clock, newId = createIds(clock, random), plans = unlimitedPlans } = needs
  const errors: unknown[] = []
  let answer: DispatchResult = accepted(null)
  let dispatches = 0
  let duringDispatch: (() => Promise<void>) | undefined
  const delivery: Delivery = {
    routesFor: () => ({
      channels: ['sms'],
      candidatesFor: (channels) =>
        channels.flatMap((channel) => providers.map((provider) => ({ channel, provider }))),
    }),
    async dispatch() {
      dispatches++
      await duringDispatch?.()
      return { ...answer, tries: [] }
    },
    estimatePrice: () => null,
    chooseText: ([first = { locale: 'en', text: '{code}' }]) => first,
    render: () => '',
    takesReports: () => false,
    report: () => Promise.resolve({ kind: 'done' }),
    findPrice: () => Promise.resolve({ kind: 'done' }),
  }
  const base = { store, clock, newId, keys: testKeys, delivery, random: needs.random ?? random, plans }
  const guard = createGuard({
    settings: guardOff,
    keys: testKeys,
    onFault: (error) => void errors.push(error),
  })
  const attempts = createMessageAttempts({
    ...base,
    owner: needs.owner ?? 'test',
    applyEarlyReceipt: () => Promise.resolve(),
    onUndeliverable: () => Promise.resolve(),
    onUnstored() {},
    onError: (error) => void errors.push(error),
  })
  const receipts = createDeliveryReceipts({
    ...base,
    guard,
    applyToRelayed: async () => false,
    onReopened: () => {},
  })
  const otp = createOtpService({
    ...base,
    attempts: { ...attempts, makeFirstAttempt: () => Promise.resolve(undefined) },
    checkFailuresMax: 25,
    sendBudget: () => 'enforce',
    guard,
    challenges: createChallenges({
      ...base,
      settings: guard.settings,
      checkToken: () => Promise.reject(new Error('there is no service')),
    }),
    recordRefusedSend: createRefusedSends({
      ...base,
      onError(error) {
        throw error
      },
    }),
    checkProof: createFirebaseProofs([], base.clock),
    onEnded() {},
  })

  return {
    ...otp,
    verify: (
      application: CallingApplication,
      requestId: string,
      code: string,
      variables?: MessageVariables,
    ) => otp.verify(application, { requestId }, { code, variables }),
    cancel: (application: CallingApplication, requestId: string) => otp.cancel(application, { requestId }),
    newId,
    now: () => clock.now(),
    claimDue: attempts.claimDue,
    /** Errors of the guard, and of attempts, which never reject. */
    errors,

    /** Counts the messages that were handed to a provider. */
    countDispatches: () => dispatches,

    /** Makes an attempt to deliver a leased message, one at a time. @param result what the provider answers */
    attempt(claim: MessageClaim, result: DispatchResult, pending?: PendingResult) {
      answer = result
      duringDispatch = undefined
      return attempts.attempt(claim, pending)
    },

    /** Does the same with a provider that takes its time. @param meanwhile what happens until it answers */
    attemptSlowly(claim: MessageClaim, result: DispatchResult, meanwhile: () => Promise<void>) {
      answer = result
      duringDispatch = meanwhile
      return attempts.attempt(claim)
    },

    /** Claim of a message's first attempt. */
    firstClaim: (requestId: string, messageNumber = 0): MessageClaim => ({
      requestId,
      messageNumber,
      owner: needs.owner ?? 'test',
      attempt: 1,
    }),

    receive: (one: Receipt, provider: string = providers[0]) => receipts.receive(provider, [one]),

    /** Stops counting a request's messages as unverified. */
    async revert(requestId: string) {
      const request = await store.read.otpRequests.find(requestId)
      if (request) await revertGuardCounts({ ...base, guard, delivery }, request)
    },

    /** Returns the code that the phone would show. @param distance other than 0: a wrong one */
    async code(requestId: string, distance = 0): Promise<string> {
      const request = await store.read.otpRequests.find(requestId)
      if (!request) throw new Error('no such request')
      return toCode(Number(deriveStoredCode(testKeys, request)) + distance)
    },
  }
}

const toCode = (number: number) => String(number % 1_000_000).padStart(6, '0')
