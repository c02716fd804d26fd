import { providerKinds } from '../delivery/providers/all-provider-kinds.ts'
import type { ProviderSettings } from '../domain/model/delivery.ts'
import type { Config } from './config.ts'

/** A configuration without secrets. It survives JSON. */
export type PublicConfig = Omit<Config, 'database'>

/** Removes the master key, passwords, the S3 secrets, the database's URL and the providers' secrets. */
export function withoutSecrets(config: Config): PublicConfig {
  const { database: _, ...rest } = config
  const { delivery, secrets } = config
  return {
    ...rest,
    delivery: { ...delivery, providers: delivery.providers.map(withoutProviderSecrets) },
    secrets: { masterKey: null, masterKeySource: secrets.masterKeySource, adminPassword: null, s3: null },
  }
}

/** Keeps the settings that are known to be no secret. */
function withoutProviderSecrets({ values, ...provider }: ProviderSettings): ProviderSettings {
  const fields = providerKinds.find(({ kind }) => kind === provider.kind)?.fields ?? {}
  const isPublic = ([name]: [string, string]) => Object.hasOwn(fields, name) && fields[name]?.secret !== true
  return { ...provider, values: Object.fromEntries(Object.entries(values).filter(isPublic)) }
}
