import { readRefusal } from '../apps/authentication.ts'
import { idempotencyLifetimeMs, readEarlierResult, runIdempotently } from '../limits/idempotency.ts'
import { eventChange, breakdownChange, countChange } from '../log/changes.ts'
import type { CallingApplication } from '../model/application.ts'
import { deriveCode, hashCode, newCodeSalt } from '../model/code.ts'
import { hashContexts } from '../model/context.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { trustOfCall } from '../model/phone-record.ts'
import { tryParsePhone, type Phone } from '../model/phone.ts'
import { canonicalPhone } from '../../shared/spellings.ts'
import { rejectProof, type Proof, type ProofType, type VerifiedProof } from '../model/proof.ts'
import type { RateState } from '../model/rate-limit.ts'
import { attachRate, isRejected, type Rejected } from '../model/rejected.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Operation } from '../store/operation.ts'
import type { Stores } from '../store/store.ts'
import { afterVerification } from './identities.ts'
import { senderOf } from './judge-message.ts'
import type { OtpNeeds } from './needs.ts'
import { loadPhone, readNationalPhone, tryReadPhone, withRequest } from './phones.ts'
import { chargeRate, otpRateLimit } from './rate-limits.ts'
import { countProved, type RecordedProof } from './guard-counts.ts'
import { utcDay } from '../../shared/durations.ts'

type ProofInput = Proof & {
  /** The number that the caller expects. */
  phone?: string | undefined
  country?: string | undefined
  metadata?: Record<string, string> | undefined
  clientIp?: string | undefined
  deviceId?: string | undefined
}

/** The part of a proved request that answers the call, and that is saved under its idempotency key. */
type ProvedOtp = { requestId: string; phone: string; verifiedAt: number }

type ProveTables = 'changes' | 'checkBudgets' | 'idempotency' | 'phones' | 'webhookEndpoints'

/** State of a call after its limits: refused, answered by an earlier call, or admitted (undefined). */
type Admission = { rate: RateState | undefined; result: Rejected | ProvedOtp | undefined }

/** Verifies phones by proofs instead of codes. */
export function createOtpProve(needs: OtpNeeds) {
  const { store, clock, newId, keys, plans, guard } = needs

  return { prove }

  /**
   * Makes a verified request of a proof. Each call is charged to the rate of verifications, and only then checked. The
   * request, its counters, its event and the mark of the token are one transaction: a token counts once.
   *
   * @throws PROOF_REJECTED; INVALID_PHONE_NUMBER for a malformed `phone`
   * @throws UNAVAILABLE (PROOF_KEYS_UNAVAILABLE)
   * @throws RATE_LIMITED (APP_RATE); UNAUTHENTICATED or FORBIDDEN when the application changed meanwhile
   * @throws IDEMPOTENCY_KEY_REUSED when the key was used with a different body
   */
  async function prove(
    application: CallingApplication,
    input: ProofInput,
    scope?: IdempotencyScope,
  ): Promise<ProvedOtp & { replayed: boolean; rate: RateState | undefined }> {
    const expected = input.phone === undefined ? undefined : await readExpected(application, input)
    const { rate, result } = await store.decide(admission(application, scope))
    if (isRejected(result)) throw attachRate(result, rate)
    if (result !== undefined) return { ...result, replayed: true, rate }
    const checked = await needs.checkProof(input)
    const proved = isRejected(checked) ? checked : readPhoneOf(checked, expected)
    if (isRejected(proved)) throw attachRate(proved, rate)
    let recorded: RecordedProof | undefined
    const { value, replayed } = await runIdempotently<ProvedOtp, ProveTables>(
      store,
      clock,
      scope,
      async (tx) => {
        recorded = await record(tx, application, input, proved)
        const { id: requestId, phone, createdAt: verifiedAt } = recorded.request
        return { requestId, phone, verifiedAt }
      },
    )
    if (recorded && !replayed) await countProved(needs, recorded)
    return { ...value, replayed, rate }
  }

  async function readExpected(application: CallingApplication, { phone = '', country }: ProofInput) {
    const typed = { phone, country }
    return tryReadPhone(typed) ?? (await readNationalPhone(needs, application, typed))
  }

  /** The operation before the proof counts: the caller, an earlier result, the rate. */
  function admission(application: CallingApplication, scope?: IdempotencyScope): Operation<Admission> {
    return {
      preload: {
        first: () => ({ application, answers: scope ? [scope] : [] }),
        next: (rows) => ({ limit: otpRateLimit(plans, rows.caller(application), 'verify') }),
      },
      decide(rows) {
        const now = rows.now()
        const end = (result: Rejected | ProvedOtp) => ({ result: { rate: undefined, result }, changes: [] })
        const refusal = readRefusal(rows, application)
        if (refusal) return end(refusal)
        const stored = scope && rows.idempotencyRecord(scope)
        const earlier = stored && readEarlierResult<ProvedOtp>(stored, scope, now)
        if (earlier) return end(isRejected(earlier) ? earlier : earlier.value)
        const charged = chargeRate(needs, rows, application, 'verify', now)
        if (isRejected(charged)) return end(charged)
        return { result: { rate: charged.rate, result: undefined }, changes: charged.changes }
      },
    }
  }

  /** Writes a verified request, unless the token was used before. @throws PROOF_REJECTED (PROOF_REUSED) */
  async function record(
    tx: Pick<Stores, ProveTables>,
    application: CallingApplication,
    input: ProofInput,
    { phone, tokenHash }: { phone: Phone; tokenHash: string },
  ): Promise<RecordedProof> {
    const now = clock.now()
    const mark = tokenMark(input.type, tokenHash)
    if (await tx.idempotency.claim(mark, now, now - idempotencyLifetimeMs))
      throw rejectProof('PROOF_REUSED').rejected
    const { id: appId, developerId, environment } = application
    const { record: known, ...handle } = await loadPhone(tx, keys, { ...phone, developerId, environment })
    const { clientIp = null, deviceId = null } = input
    const contexts = hashContexts(keys, developerId, { clientIp, deviceId })
    const trust = trustOfCall(known, { clientIp, contexts }, now)
    const request = buildProved(application, input, phone, now, {
      contexts,
      startedBy: trust === 'stranger' ? trust : 'known',
      previousRequest: known.newestRequest,
    })
    const sender = { ...senderOf(known, request), isKnownPhone: true }
    const guardKeys = guard.keysToConvert(request, sender, now)
    const network = guardKeys?.subjects?.network
    const after = afterVerification(withRequest(known, request), newId, request, trust, now, network)
    const subscribers = await tx.webhookEndpoints.subscribers(appId)
    await tx.changes.apply([
      { kind: 'request', request, isNew: true },
      { kind: 'phone', handle, record: after.record },
      ...after.activeChanges,
      countChange(request, { requests: 1, verified: 1 }, utcDay(now)),
      breakdownChange(request, { requests: 1, verified: 1 }, now),
      eventChange(newId, 'otp.verified', request, subscribers, now),
    ])
    return { request, sender, guardKeys }
  }

  /** Builds a request that is verified from the start. As every request it has a code, which is never shown. */
  function buildProved(
    application: CallingApplication,
    { clientIp, metadata }: ProofInput,
    { phone, country }: Phone,
    now: number,
    origin: Pick<OtpRequest, 'contexts' | 'startedBy' | 'previousRequest'>,
  ): OtpRequest {
    const { id: appId, developerId, projectId, environment, traceparent } = application
    const codeSource = { id: newId('otp'), codeSalt: newCodeSalt(needs.random) }
    const code = deriveCode(keys, { ...codeSource, phone, environment })
    return {
      ...codeSource,
      codeHash: hashCode(keys, codeSource.id, code),
      developerId,
      projectId,
      appId,
      environment,
      phone,
      country,
      status: 'verified',
      failureReason: null,
      channel: 'silent',
      provider: null,
      deliveryStatus: null,
      locale: null,
      clientIp: clientIp ?? null,
      metadata: metadata ?? null,
      ownText: null,
      template: null,
      attempts: 0,
      resends: 0,
      createdAt: now,
      sentAt: now,
      expiresAt: now,
      verifiedAt: now,
      ...origin,
      history: '',
      compat: null,
      updatedAt: now,
      ...(traceparent !== undefined && { traceparent }),
    }
  }
}

/** Reads the number of a proof. @returns the refusal PROOF_REJECTED */
function readPhoneOf(
  { phone: text, tokenHash }: VerifiedProof,
  expected: Phone | undefined,
): { phone: Phone; tokenHash: string } | Rejected {
  const phone = tryParsePhone(text)
  if (phone === undefined || phone.isVirtual) return rejectProof('PROOF_MALFORMED')
  if (expected && canonicalPhone(expected.phone) !== canonicalPhone(phone.phone))
    return rejectProof('PROOF_PHONE')
  return { phone, tokenHash }
}

/**
 * Names the row of a used token. It is kept as long as results of calls, which is longer than a token lives; of several
 * calls at once exactly one can insert it.
 */
const tokenMark = (type: ProofType, key: string): IdempotencyScope => ({
  caller: 'proofs',
  route: type,
  key,
  bodyHash: '',
  earlierBodyHashes: [],
})
