import { recordAudit, selfActor } from './audit.ts'
import { lockLogin } from './developers.ts'
import { hostOrigin, type Actor } from '../model/audit.ts'
import type { Clock } from '../model/clock.ts'
import { invalidField, ServiceError } from '../model/errors.ts'
import type { NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import type { Random } from '../model/random.ts'
import { seal, unseal } from '../model/sealed.ts'
import { hashToken } from '../model/tokens.ts'
import {
  encodeBase32,
  findTotpStep,
  totpSecretBytes,
  totpStepsOffMax,
  totpStepStart,
  totpUri,
} from '../model/totp.ts'
import type { Store, Stores } from '../store/store.ts'
import type { TotpSecret } from '../store/totp-secrets.ts'

const recoveryCodeCount = 10
/** 80 bits, so that a plain hash without salt is enough to store them (NIST SP 800-63B §3.1.2.2). */
const recoveryCodeBytes = 10

/** A secret for an authenticator app, as text and as the URI of a QR code. */
type ProposedTotp = { secret: string; uri: string }

/** Way in which a second factor was proven, for the audit trail. */
type TotpMethod = 'totp' | 'recovery_code'

export type TotpService = ReturnType<typeof createTotpService>

type SealedTotpSecret = Pick<TotpSecret, 'developerId' | 'secret'>

/** Encrypts the secret of a developer. The text names the version of its key. */
export function sealTotpSecret(
  { keys, random }: { keys: Pick<Keys, 'seals'>; random: Random },
  developerId: string,
  secret: Uint8Array,
): string {
  const { version } = keys.seals
  const key = findSealKey(keys, version)
  const text = Buffer.from(secret).toString('base64url')
  return `${version}.${seal(key, sealContext(developerId), text, random)}`
}

/** Decrypts the secret of a developer. */
export function openTotpSecret(keys: Pick<Keys, 'seals'>, { developerId, secret }: SealedTotpSecret): Buffer {
  const [version = '', sealed = ''] = secret.split('.')
  const text = unseal(findSealKey(keys, Number(version)), sealContext(developerId), sealed)
  return Buffer.from(text, 'base64url')
}

function findSealKey(keys: Pick<Keys, 'seals'>, version: number): Buffer {
  const key = keys.seals.find(version)
  if (!key) throw new Error(`there is no seal key of version ${version}`)
  return key
}

/** Creates the service for second factors of the built-in provider's accounts: time-based codes (RFC 6238). */
export function createTotpService(needs: {
  store: Store<'accounts' | 'audit' | 'developers' | 'totpSecrets'>
  clock: Clock
  /** Wall clock: the codes of an authenticator app follow it. */
  wall: Clock
  newId: NewId
  random: Random
  keys: Pick<Keys, 'seals'>
  /**
   * Called when a right code is refused as used, although it is older than the last one that was accepted: the clock was set
   * back, and codes are refused until `acceptedAgainAt`. Recovery codes are accepted all the time.
   */
  onTotpClockSetBack?: ((refused: { developerId: string; acceptedAgainAt: number }) => void) | undefined
}) {
  const { store, clock, wall, newId, random, keys, onTotpClockSetBack } = needs

  const randomBytes = (length: number) => {
    const bytes = new Uint8Array(length)
    random(bytes)
    return bytes
  }
  const unsealSecret = (secret: SealedTotpSecret) => openTotpSecret(keys, secret)

  return {
    /** Whether logins of the developer need a code. */
    async isEnabled(developerId: string): Promise<boolean> {
      return (await store.read.totpSecrets.find(developerId))?.confirmedAt != null
    },

    /**
     * Proposes a secret, which takes effect when it is confirmed, and replaces one that was proposed before.
     *
     * @throws NOT_FOUND the developer logs in with an external provider; CONFLICT (TOTP_ENABLED); as `lockLogin`
     */
    async propose(developer: Actor): Promise<ProposedTotp> {
      const account = await store.read.accounts.find(developer.id)
      if (!account) throw noPassword()
      const secret = randomBytes(totpSecretBytes)
      const isProposed = await store.write(async (tx) => {
        await lockLogin(tx, developer)
        return tx.totpSecrets.propose({
          developerId: developer.id,
          // Sealed in the transaction: the key may have been replaced just before it.
          secret: sealTotpSecret({ keys, random }, developer.id, secret),
          createdAt: clock.now(),
        })
      })
      if (!isProposed)
        throw new ServiceError('CONFLICT', 'TOTP is enabled already. Disable it first to set it up again.', {
          reason: 'TOTP_ENABLED',
        })
      return { secret: encodeBase32(secret), uri: totpUri(secret, account.email) }
    },

    /**
     * Enables the proposed secret with its first code. Atomic: one of several concurrent calls succeeds.
     *
     * @returns ten recovery codes, which each replace a code once; they are not shown again
     * @throws INVALID_ARGUMENT the code is wrong; CONFLICT (TOTP_NOT_PROPOSED)
     */
    async confirm(developer: Actor, code: string): Promise<string[]> {
      const proposed = await store.read.totpSecrets.find(developer.id)
      if (!proposed || proposed.confirmedAt !== null) throw notProposed()
      const step = findTotpStep(unsealSecret(proposed), code, wall.now())
      if (step === undefined)
        throw invalidField(
          'body',
          'code',
          "The code is wrong. Enter the current one, and check the device's clock.",
        )
      const recoveryCodes = Array.from({ length: recoveryCodeCount }, () =>
        formatRecoveryCode(randomBytes(recoveryCodeBytes)),
      )
      const isConfirmed = await store.write(async (tx) => {
        await lockLogin(tx, developer)
        const now = clock.now()
        if (!(await tx.totpSecrets.confirm(developer.id, proposed.secret, step, now))) return false
        await tx.totpSecrets.insertRecoveryCodes(developer.id, recoveryCodes.map(hashRecoveryCode))
        const details = { action: 'totp.enabled', targetId: developer.id } as const
        await recordAudit(tx, newId, selfActor(developer), details, now)
        return true
      })
      if (!isConfirmed) throw notProposed()
      return recoveryCodes
    },

    /**
     * Uses up a code of the authenticator app or a recovery code. Each is accepted once, also by concurrent callers.
     *
     * @returns undefined if the code is wrong or was used before, or TOTP is not enabled
     */
    async useCode(developerId: string, code: string): Promise<TotpMethod | undefined> {
      const secret = await store.read.totpSecrets.find(developerId)
      if (!secret || secret.confirmedAt === null) return undefined
      const step = findTotpStep(unsealSecret(secret), code.replaceAll(/\s/g, ''), wall.now())
      if (step !== undefined && secret.lastStep > step + totpStepsOffMax * 2)
        onTotpClockSetBack?.({ developerId, acceptedAgainAt: totpStepStart(secret.lastStep + 1) })
      return store.write(async (tx) => {
        if (step !== undefined)
          return (await tx.totpSecrets.useStep(developerId, step)) ? ('totp' as const) : undefined
        const hash = hashRecoveryCode(code)
        return (await tx.totpSecrets.useRecoveryCode(developerId, hash))
          ? ('recovery_code' as const)
          : undefined
      })
    },

    /** Removes the second factor for its owner. @throws CONFLICT (TOTP_NOT_ENABLED); as `lockLogin` */
    async remove(developer: Actor): Promise<void> {
      const isRemoved = await store.write(async (tx) => {
        await lockLogin(tx, developer)
        if (!(await tx.totpSecrets.delete(developer.id))) return false
        const details = { action: 'totp.disabled', targetId: developer.id } as const
        await recordAudit(tx, newId, selfActor(developer), details, clock.now())
        return true
      })
      if (!isRemoved) throw totpNotEnabled()
    },

    /** Removes the second factor for the operator. @throws NOT_FOUND; CONFLICT (TOTP_NOT_ENABLED) */
    async reset(developerId: string): Promise<void> {
      const isRemoved = await store.write((tx) => resetTotp(tx, developerId))
      if (!isRemoved) throw totpNotEnabled()
    },
  }

  async function resetTotp(tx: Pick<Stores, 'audit' | 'totpSecrets'>, developerId: string) {
    if (!(await tx.totpSecrets.delete(developerId))) return false
    const operator = { developerId, actorId: null, origin: hostOrigin }
    await recordAudit(tx, newId, operator, { action: 'totp.reset', targetId: developerId }, clock.now())
    return true
  }
}

const sealContext = (developerId: string) => `totp_secrets.secret.${developerId}`

/** Writes a recovery code as four groups of four characters. */
const formatRecoveryCode = (bytes: Uint8Array) =>
  encodeBase32(bytes)
    .toLowerCase()
    .replaceAll(/.{4}(?!$)/g, '$&-')

/** Accepts what people make of a code when they copy it from paper. */
const hashRecoveryCode = (code: string) => hashToken(code.toLowerCase().replaceAll(/[^a-z2-7]/g, ''))

/** Builds the error for an account of an external provider, which has no password and no second factor here. */
export const noPassword = () =>
  new ServiceError('NOT_FOUND', 'This account has no password here: it belongs to another identity provider.')

export const totpNotEnabled = () =>
  new ServiceError('CONFLICT', 'TOTP is not enabled for this account.', { reason: 'TOTP_NOT_ENABLED' })

const notProposed = () =>
  new ServiceError('CONFLICT', 'There is no secret to confirm. Set TOTP up first.', {
    reason: 'TOTP_NOT_PROPOSED',
  })
