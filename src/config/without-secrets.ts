import { providerKinds } from '../delivery/providers/all-provider-kinds.ts'
import type { ChallengeSettings } from '../domain/model/challenge.ts'
import type { ProviderSettings } from '../domain/model/delivery.ts'
import type { Config } from './config.ts'

/** A configuration without secrets. It survives JSON. */
export type PublicConfig = Omit<Config, 'database'>

/** Removes the master key, passwords, the S3 secrets, the database's URL and the secrets of providers and the challenge. */
export function withoutSecrets(config: Config): PublicConfig {
  const { database: _, ...rest } = config
  const { delivery, guard, secrets } = config
  return {
    ...rest,
    guard: { ...guard, challenge: guard.challenge && withoutSecret(guard.challenge) },
    delivery: { ...delivery, providers: delivery.providers.map(withoutProviderSecrets) },
    secrets: { masterKey: null, masterKeySource: secrets.masterKeySource, adminPassword: null, s3: null },
  }
}

const withoutSecret = (challenge: ChallengeSettings): ChallengeSettings =>
  challenge.kind === 'altcha' ? challenge : { ...challenge, secret: '' }

/** Keeps the settings that are known to be no secret. */
function withoutProviderSecrets({ values, ...provider }: ProviderSettings): ProviderSettings {
  const fields = providerKinds.find(({ kind }) => kind === provider.kind)?.fields ?? {}
  const isPublic = ([name]: [string, string]) => Object.hasOwn(fields, name) && fields[name]?.secret !== true
  return { ...provider, values: Object.fromEntries(Object.entries(values).filter(isPublic)) }
}
