import { alertDestinationKinds } from '../delivery/alerts/all-alert-kinds.ts'
import type { SettingFields } from '../delivery/kit/provider-kinds.ts'
import { providerKinds } from '../delivery/providers/all-provider-kinds.ts'
import type { ChallengeSettings } from '../domain/model/challenge.ts'
import type { Config } from './config.ts'

/** A configuration without secrets. It survives JSON. */
export type PublicConfig = Omit<Config, 'database'>

/** Removes the master key, passwords, the S3 secrets, the database's URL and the secrets of alerts, providers and the challenge. */
export function withoutSecrets(config: Config): PublicConfig {
  const { database: _, ...rest } = config
  const { alerts, delivery, guard, secrets } = config
  return {
    ...rest,
    alerts: alerts.map((alert) => withoutSecretValues(alert, alertDestinationKinds)),
    guard: { ...guard, challenge: guard.challenge && withoutSecret(guard.challenge) },
    delivery: {
      ...delivery,
      providers: delivery.providers.map((provider) => withoutSecretValues(provider, providerKinds)),
    },
    secrets: { masterKey: null, masterKeySource: secrets.masterKeySource, adminPassword: null, s3: null },
  }
}

const withoutSecret = (challenge: ChallengeSettings): ChallengeSettings =>
  challenge.kind === 'altcha' ? challenge : { ...challenge, secret: '' }

/** Keeps the settings that are known to be no secret. */
function withoutSecretValues<T extends { kind: string; values: Readonly<Record<string, string>> }>(
  settings: T,
  kinds: ReadonlyArray<{ kind: string; fields: SettingFields }>,
): T {
  const fields = kinds.find(({ kind }) => kind === settings.kind)?.fields ?? {}
  const isPublic = ([name]: [string, string]) => Object.hasOwn(fields, name) && fields[name]?.secret !== true
  return { ...settings, values: Object.fromEntries(Object.entries(settings.values).filter(isPublic)) }
}
