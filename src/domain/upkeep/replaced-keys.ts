import { openTotpSecret, sealTotpSecret } from '../accounts/totp.ts'
import { codeKeysOf } from '../model/code.ts'
import type { Clock } from '../model/clock.ts'
import type { NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import type { Random } from '../model/random.ts'
import { isPseudonym, upgradePseudonym } from '../model/pseudonyms.ts'
import { cancelRequests } from '../otp/lifecycle.ts'
import { createEvidenceBackfill, createGuardBackfill, createRelayBackfill } from './guard-backfills.ts'
import type { Backfill } from './backfills.ts'
import { createLinkBackfill } from './link-requests.ts'
import { createPhoneBackfills } from './phone-key-backfill.ts'
import { redactPayload } from './retention.ts'
import { sealBackfills } from './seal-backfills.ts'

/**
 * Creates the backfill that cancels pending requests whose code was made with replaced keys, through the lifecycle that also
 * tells the log and webhooks.
 */
export const createEndedCodesBackfill = (needs: { keys: Keys; clock: Clock; newId: NewId }): Backfill => ({
  name: 'codes',
  purpose: 'codes',
  async step(tx, position, limit) {
    const { keys, clock, newId } = needs
    if (keys.endedCodes.length === 0) return undefined
    const [expiresAt = '0', id = ''] = position.split(' ')
    const requests = await tx.otpRequests.listPending({ expiresAt: Number(expiresAt), id }, limit)
    const last = requests.at(-1)
    if (!last) return undefined
    const ids = requests.filter((request) => codeKeysOf(keys, request) !== keys).map((request) => request.id)
    await cancelRequests(tx, newId, ids, clock.now())
    return `${last.expiresAt} ${last.id}`
  },
})

/** Creates the backfills that bring pseudonyms to the newest key. It works without the phone numbers. */
function createPseudonymBackfills(keys: Pick<Keys, 'pseudonym'>): Backfill[] {
  const backfill = (name: string, step: Backfill['step']): Backfill => ({
    name: `pseudonyms.${name}`,
    purpose: 'pseudonyms',
    // Version 1 has nothing to bring up.
    step: async (...args) => (keys.pseudonym.length === 1 ? undefined : step(...args)),
  })
  return [
    backfill('requests', async (tx, position, limit) => {
      const rows = await tx.retention.listRequests(position, undefined, limit)
      for (const { id, phone } of rows) {
        if (isPseudonym(phone)) await tx.retention.replaceInRequest(id, upgradePseudonym(keys, phone))
      }
      return rows.at(-1)?.id
    }),
    backfill('events', async (tx, position, limit) => {
      const rows = await tx.retention.listEvents(Number(position), limit)
      for (const { seq, phone } of rows) {
        if (!isPseudonym(phone)) continue
        const pseudonym = upgradePseudonym(keys, phone)
        await tx.retention.replaceInEvent(seq, pseudonym, (payload) => redactPayload(payload, pseudonym))
      }
      const last = rows.at(-1)
      return last && String(last.seq)
    }),
  ]
}

/** Creates the backfill that encrypts the secrets of second factors with the newest key. */
const createTotpBackfill = (needs: { keys: Pick<Keys, 'seals'>; random: Random }): Backfill => ({
  name: 'seals.totp_secrets',
  purpose: 'seals',
  async step(tx, position, limit) {
    const rows = await tx.totpSecrets.list(position, limit)
    for (const row of rows) {
      const { developerId, secret } = row
      if (secret.startsWith(`${needs.keys.seals.version}.`)) continue
      const sealed = sealTotpSecret(needs, developerId, openTotpSecret(needs.keys, row))
      await tx.totpSecrets.reseal(developerId, sealed)
    }
    return rows.at(-1)?.developerId
  },
})

/** Creates all backfills that follow a replacement of data keys. */
export const createAllBackfills = (
  needs: Parameters<typeof createEndedCodesBackfill>[0] & { random: Random },
): Backfill[] => [
  createEndedCodesBackfill(needs),
  ...createPseudonymBackfills(needs.keys),
  ...createPhoneBackfills(needs.keys),
  createLinkBackfill(needs.keys),
  createTotpBackfill(needs),
  createEvidenceBackfill(needs),
  createRelayBackfill(needs),
  createGuardBackfill(needs.keys, needs.clock),
  ...sealBackfills,
]
