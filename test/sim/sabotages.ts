import { inFile, type Sabotage } from './in-file.ts'
import { storageSabotages } from './storage-sabotages.ts'

/** Changes that take a guarantee away, one each. */
export const sabotages: readonly Sabotage[] = [
  // Codes, attempts, states.
  ...inFile(
    'domain/otp/verify.ts',
    ['http/routes/otp-verify', 'http/routes/otp-trust-levels', 'http/routes/otp-limits'],
    [
      [
        'a wrong code is not counted',
        'attempts: request.attempts + 1, updatedAt: now }\n    const changes',
        'attempts: request.attempts, updatedAt: now }\n    const changes',
      ],
      [
        'the last attempt does not end the code',
        'if (attemptsRemaining === 0) {',
        'if (attemptsRemaining === -1) {',
      ],
      [
        'an ended code is compared',
        'if (closed) return closed',
        'if (closed && request.status === "expired") return closed',
      ],
      ['a verified code stays pending', "status: 'verified',\n", "status: 'pending',\n"],
      ['failures of a phone are not counted', 'if (isLimited(request)) {', 'if (!isLimited(request)) {'],
      ['a spent budget does not refuse', 'if (spent) return refuse(spent)', ''],
      ['the rate of checks is not charged', 'changes: [...charged.changes, ...changes] }', 'changes }'],
      [
        'no event reports a verification',
        "eventChange(newId, 'otp.verified', verified, subscribers, now),",
        '',
      ],
    ],
  ),
  ...inFile(
    'domain/model/code.ts',
    ['domain/model/code'],
    [
      ['codes have a modulo bias', 'if (number < unbiasedBelow) return', 'if (number >= 0) return'],
      ['codes do not depend on the salt', '.update(salt)', ''],
      ['the hash of a code is that of any request', '${requestId}${code}`', '${code}`'],
      [
        'the code of a payment is right for any other',
        '`${bindingText(variables)}${requestId}',
        '`${requestId}',
      ],
      ['leading zeros are cut', ".padStart(codeDigits, '0')", ''],
    ],
  ),
  ...inFile(
    'domain/model/request.ts',
    ['http/routes/otp-states', 'http/routes/otp-verify', 'http/routes/otp-resend'],
    [
      [
        'a code lives a moment too long',
        "request.status === 'pending' && request.expiresAt <= now",
        "request.status === 'pending' && request.expiresAt < now",
      ],
      ['a code has a resend too many', 'export const resendsMax = 3', 'export const resendsMax = 4'],
    ],
  ),
  ...inFile(
    'domain/otp/lifecycle.ts',
    ['http/routes/otp-states', 'http/routes/otp-verify'],
    [
      [
        'closed codes are not refused',
        "if (request.status !== 'pending') return { result: reject",
        "if (request.status === 'expired') return { result: reject",
      ],
      ['expired codes are not refused', 'if (!isExpired(request, now)) return undefined', 'return undefined'],
    ],
  ),
  // Limits.
  ...inFile(
    'domain/limits/rate-limit.ts',
    ['domain/limits/rate-limit', 'http/routes/otp-limits'],
    [
      ['a limit admits one more', 'usage.used >= limit.limit', 'usage.used > limit.limit'],
      ['the log of a limiter goes backwards', 'at: Math.max(now, newest?.at ?? 0),', 'at: now,'],
      ['an admission has the number of the last one', '(newest?.seq ?? 0) + 1', '(newest?.seq ?? 0)'],
    ],
  ),
  ...inFile(
    'domain/limits/check-budget.ts',
    ['domain/limits/check-budget', 'http/routes/otp-trust-levels'],
    [
      ['a budget of checks never runs out', 'if (waitMs <= 0) return undefined', 'return undefined'],
      [
        'a trust level is never locked',
        'const lockedMs = (budget.lockedUntil ?? 0) - now',
        'const lockedMs = 0',
      ],
      ['a success refills the budget', 'checks && { ...checks, consecutiveFailures: 0 }', 'checks && null'],
      ['failures in a row are not counted', 'budget.consecutiveFailures + 1', 'budget.consecutiveFailures'],
    ],
  ),
  ...inFile(
    'domain/limits/send-budget.ts',
    ['domain/limits/send-budget'],
    [
      [
        'a budget of sends never refuses',
        "if (mode === 'enforce' && waitMs > 0) {",
        "if (mode === 'enforce' && waitMs > 1e12) {",
      ],
      ['a budget of sends admits one more', '.at(-limit)', '.at(-limit - 1)'],
      ['a send is not counted', ', now].slice(-sendsKept)', '].slice(-sendsKept)'],
    ],
  ),
  ...inFile(
    'domain/limits/idempotency.ts',
    ['http/routes/otp-idempotency'],
    [
      ['a key may be used with another body', 'if (bodyHash !== scope.bodyHash &&', 'if (bodyHash === "" &&'],
      [
        'results are not stored',
        "return [{ kind: 'idempotency', scope,",
        "return [].concat([]) as never; [{ kind: 'idempotency', scope,",
      ],
      ['results with credentials are stored', 'if (redact) return { withheld: true }', ''],
      [
        'results are kept a year',
        'createdAt <= now - idempotencyLifetimeMs',
        'createdAt <= now - 365 * idempotencyLifetimeMs',
      ],
    ],
  ),
  ...inFile(
    'store/sqlite/admission-log.ts',
    ['store/sqlite/admission-log', 'store/invariants', 'domain/limits/rate-limit', 'http/routes/otp-limits'],
    [
      [
        'a window loses its last moment',
        'countUntil(times, now - windowMs)',
        'countUntil(times, now - windowMs + 1000)',
      ],
      ['a window counts one less', 'Math.max(0, end - start)', 'Math.max(0, end - start - 1)'],
      [
        'admissions are not written',
        'if (changes.length === 0) return\n      const base',
        'if (changes.length >= 0) return\n      const base',
      ],
      ['admissions of a rolled back batch stay', 'if (at !== undefined) times.pop()', ''],
      ['admissions that a rolled back batch replaced are lost', 'times.push(...replaced)', ''],
      ['admissions are not read at a start', 'if (isCurrent) return', 'return'],
      [
        'the newest row is deleted too',
        'where seq < (select max(seq) from admission_batches)',
        'where seq <= (select max(seq) from admission_batches)',
      ],
    ],
  ),
  ...inFile(
    'store/sqlite/phone-index.ts',
    ['store/sqlite/phone-index'],
    [
      ['a phone is lost with a rolled back batch', 'else newest.set(hash, replaced)', ''],
      ['keys of phones are used again', 'writes().noteDeleted.run(key)', ''],
    ],
  ),
  // Delivery.
  ...inFile(
    'domain/otp/settle.ts',
    ['delivery/core', 'delivery/receipts', 'store/messages'],
    [
      [
        'a message of another sender is settled',
        'if (!message || !isLeasedBy(message, claim))',
        'if (!message)',
      ],
      [
        'an uncertain message is sent again',
        "case 'uncertain':\n      return {\n        ...baseOutcome,\n        status: 'unknown'",
        "case 'uncertain':\n      return {\n        ...baseOutcome,\n        nextAttemptAt: now,\n        status: 'pending'",
      ],
      [
        'a message is sent after its code has expired',
        'nextAttemptAt > request.expiresAt - remainingLifetimeMinMs',
        'nextAttemptAt < 0',
      ],
    ],
  ),
  ...inFile(
    'delivery/circuit-breaker.ts',
    ['delivery/circuit-breaker'],
    [
      [
        'a circuit opens one failure late',
        '++consecutiveFailures < consecutiveFailuresMax',
        '++consecutiveFailures <= consecutiveFailuresMax',
      ],
      ['the backoff does not grow', 'backoffMs * 2', 'backoffMs'],
      ['sends in flight extend the backoff', 'if (isOpen) return undefined', ''],
      ['a circuit never closes', "openCircuit = undefined\n        return 'closed'", "return 'closed'"],
    ],
  ),
  ...inFile(
    'domain/model/fair-permits.ts',
    ['domain/model/fair-permits'],
    [['one developer takes all permits', '< free * (isTest ? share / 2 : share)', '< free']],
  ),
  // Webhooks.
  ...inFile(
    'webhooks/retry.ts',
    ['webhooks/retry'],
    [
      [
        'a delivery is never given up',
        'if (step === undefined) return null',
        'if (step === undefined) return 1000',
      ],
      ['Retry-After is not bounded', 'Math.min(requestedMs, 2 * step)', 'requestedMs'],
    ],
  ),
  ...inFile(
    'domain/webhooks/auto-disable.ts',
    ['domain/webhooks/schedule', 'http/routes/webhooks'],
    [
      ['an endpoint that is gone stays enabled', 'if (!isGone && now', 'if (now'],
      ['a failing endpoint stays enabled', '!isGone && now - since < failingMaxMs', '!isGone'],
    ],
  ),
  ...inFile(
    'webhooks/result-recorder.ts',
    ['webhooks/worker', 'webhooks/disk-fault', 'webhooks/queue'],
    [
      [
        'results that failed to be written are dropped',
        'recordsOneByOne = true\n      return false',
        'recordsOneByOne = true\n      unrecorded.clear()\n      return false',
      ],
      [
        'aborted deliveries are not released',
        'if (!sent) await webhookOutbox.release({ ...claim, owner })',
        'if (!attempt) continue',
      ],
    ],
  ),
  ...inFile(
    'webhooks/worker.ts',
    ['webhooks/worker', 'webhooks/disk-fault', 'webhooks/queue'],
    [
      [
        'leases of a killed process are kept',
        'if (ownsAllLeases) await store.write((tx) => tx.webhookOutbox.releaseAll())',
        '',
      ],
      ['a lease that ends is used', '|| claim.leaseUntil - at < leaseLeftMinMs', ''],
      ['the worker wakes although nothing was released', 'if (isReleased) wake()', 'wake()'],
    ],
  ),
  // Codes of another system, and what they cost.
  ...inFile(
    'domain/otp/relay-settle.ts',
    ['http/routes/costs', 'http/routes/otp-deliver'],
    [
      [
        'codes of another system cost nothing',
        '...(cost && relayedCounts(costCounts(cost)))',
        '...(cost && relayedCounts({}))',
      ],
      ['the price of a code of another system is not kept', '...(cost ?? noCost),', '...noCost,'],
    ],
  ),
  ...inFile(
    'domain/otp/relay-receipts.ts',
    ['http/routes/costs', 'http/routes/otp-deliver'],
    [
      [
        'a late price is booked on another day',
        'breakdownChange(message, counts, message.createdAt)',
        'breakdownChange(message, counts, message.createdAt + 86_400_000)',
      ],
    ],
  ),
  // Sessions of the ready page.
  ...inFile(
    'domain/otp/sessions.ts',
    ['http/page/page', 'http/page/payment'],
    [
      ['the page checks a payment as any other code', 'code, variables: variables ?? undefined }', 'code }'],
      ['the page sends a payment as any other code', '      variables: variables ?? undefined,\n', ''],
      ['the page sends to any phone', '...(own !== null && { phone: own }),', ''],
      [
        'a session is not verified with its code',
        'const changes = markVerified(current, request, rows)',
        'const changes: Change[] = []',
      ],
    ],
  ),
  ...inFile(
    'domain/model/due-worker.ts',
    ['domain/model/due-worker', 'server/idle'],
    [
      [
        'a change during a round is missed',
        'withinMs = Math.min(withinMs, isForeign ? 0 : pollMs)',
        'isForeign && (withinMs = 0)',
      ],
      ['a commit wakes no worker that sleeps', 'if (isForeign || !isSoon) arm(withinMs)', ''],
      ['the changes of other processes wait', 'if (isForeign || !isSoon)', 'if (!isSoon)'],
      ['a worker whose read failed sleeps on', 'let dueInMs = pollMs', 'let dueInMs = Infinity'],
      ['a worker sleeps without an end', 'withinMs = changes ? sleepMsMax : pollMs', 'withinMs = Infinity'],
    ],
  ),
  ...inFile(
    'store/messages.ts',
    ['store/messages'],
    [
      [
        'a worker sleeps through leases that end',
        ".select({ nextAttemptAt: messages.nextAttemptAt, leaseUntil: messages.leaseUntil })\n      .from(messages)\n      .where(sql`${messages.status} = 'pending'`)",
        ".select({ nextAttemptAt: messages.nextAttemptAt, leaseUntil: messages.leaseUntil })\n      .from(messages)\n      .where(sql`${messages.status} = 'pending' and ${messages.leaseUntil} is null`)",
      ],
    ],
  ),
  ...storageSabotages,
  // The guard: a bound each.
  ...inFile(
    'domain/guard/allowances.ts',
    ['domain/guard/allowances', 'domain/guard/guard'],
    [
      [
        'the guard has no bound of a country',
        'country.unverified >= times * countryAllowance(',
        'country.unverified >= 1e9 * countryAllowance(',
      ],
      [
        'the guard has no bound of the pool',
        'usages.pool >= times * allowances.pool.perDay',
        'usages.pool < 0',
      ],
      ...['prefix', 'network', 'device'].map((kind): [string, string, string] => [
        `the guard has no bound of a ${kind}`,
        "['prefix', 'network', 'device'] as const",
        `${JSON.stringify(['prefix', 'network', 'device'].filter((other) => other !== kind))} as const`,
      ]),
      ['the guard is not fair', 'rules.length === 0 && !isFair(', 'rules.length < 0 && !isFair('],
      ['a prefix is not shared out', 'prefix.evidence > 0 ? spentShare', 'prefix.evidence < 0 ? spentShare'],
      ['a country counts all of the pool', 'Math.max(0, times * perDay - pool)', 'times * perDay'],
      [
        'the launch of a country never ends',
        'utcDay(now) < launchDay + launchDays ? launchBase : base',
        'launchBase',
      ],
      ['any name of a device counts', 'network && device?.evidence === 0 ? undefined : device', 'device'],
    ],
  ),
  ...inFile(
    'domain/model/phone-record.ts',
    ['http/routes/otp-trust-levels', 'domain/model/context'],
    [['every sender is a stranger', "if (isKnown(deviceOf(sender))) return 'device'", '']],
  ),
  ...inFile(
    'domain/accounts/login-attempts.ts',
    ['domain/accounts/login-attempts'],
    [
      ['a login has one attempt more', 'const loginAttemptsMax = 5', 'const loginAttemptsMax = 6'],
      ['passwords may be sprayed', 'if (lastSprayed && !isKnown)', 'if (lastSprayed && isKnown)'],
    ],
  ),
  ...inFile(
    'domain/upkeep/clock-rollback.ts',
    ['domain/upkeep/clock-rollback', 'store/clock-rollback'],
    [
      [
        'a clock that was set back is not noticed',
        'if (rollbackMs < clockRollbackMinMs) return 0',
        'return 0',
      ],
    ],
  ),
]
