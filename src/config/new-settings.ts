import type { SettingValue } from './reader.ts'

/** Settings by the release that introduced them; those of 0.1.0 are not listed. Earlier releases refuse them. */
export const newSettings: Record<string, readonly string[]> = {
  '0.2.0': [
    'auth.requireTotp',
    'auth.tokenMaxHours',
    'backup.accessKeyId',
    'backup.every',
    'backup.keep',
    'backup.s3Endpoint',
    'backup.s3Region',
    'backup.secretAccessKeyEnv',
    'backup.secretAccessKeyFile',
    'backup.to',
    'compat.enable',
    'database.connections',
    'database.statements',
    'database.urlFile',
    'databaseUnsafe',
    'databaseUrl',
    'guard.allowedNumberTypes',
    'limits.consolePerMinute',
    'limits.lookupsPerMinute',
    'server.node',
    'tls.certFile',
    'tls.directoryCaFile',
    'tls.directoryUrl',
    'tls.domains',
    'tls.email',
    'tls.hstsSeconds',
    'tls.httpListen',
    'tls.keyFile',
    'plans.*.consolePerMinute',
    'plans.*.lookupsPerMinute',
  ],
  '0.3.0': [
    'alerts.*.kind',
    'guard.challenge.hostnames',
    'guard.challenge.kind',
    'guard.challenge.secret',
    'guard.challenge.secretFile',
    'guard.challenge.siteKey',
    'guard.challenge.timeoutSeconds',
    'guard.challenge.verifyUrl',
    'guard.spendPerDay',
    'prices.currency',
    'proofs.firebase.projects',
    'providers.*.applicationId',
    'providers.*.failoverOnBlock',
    'providers.*.feedback',
    'providers.*.price',
    'providers.*.prices',
    'providers.*.privateKey',
    'providers.*.rcsFrom',
    'providers.*.reportBody',
    'providers.*.reportUrl',
    'routes.*.strategy',
    'server.drainSeconds',
  ],
}

/** Values of older settings, words of their lists and placeholders of their texts, by the release that introduced them. */
export const newValues: Record<string, Readonly<Record<string, readonly string[]>>> = {
  '0.3.0': {
    'guard.allowedNumberTypes': ['fixedLine', 'company', 'pager', 'voicemail', 'tollFree'],
    'providers.*.body': ['{{messageNumber}}'],
    'providers.*.channels': ['rcs'],
    'providers.*.headers': ['{{messageNumber}}'],
    'providers.*.kind': ['aws-notify', 'prelude', 'telnyx-verify', 'twilio-verify', 'vonage-verify'],
    'providers.*.url': ['{{messageNumber}}'],
    'routes.*.channel': ['rcs'],
  },
}

/** A setting, or its value, that an older release does not know, and the release that introduced it. */
type NewSetting = SettingValue & { since: string }

/** Lists the settings that are set, and that a release refuses because they are newer. */
export function listNewerSettings(settings: readonly SettingValue[], release: string): NewSetting[] {
  const isLater = ([since]: [string, unknown]) => Bun.semver.order(since, release) > 0
  const laterNames = Object.entries(newSettings).filter(isLater)
  const laterValues = Object.entries(newValues).filter(isLater)
  return settings.flatMap((one) => {
    // A flag, a variable of otpd, or a line of the file.
    if (!/^(--|OTPD_)|:\d+$/.test(one.origin)) return []
    const name = one.setting.replace(/^(alerts|plans|providers|routes)\.[^.]+\./, '$1.*.')
    const [since] = laterNames.find(([, names]) => names.includes(name)) ?? []
    if (since !== undefined) return [{ ...one, since }]
    const parts = listParts(String(one.value))
    return laterValues.flatMap(([valueSince, values]) =>
      (values[name] ?? [])
        .filter((value) => parts.includes(value))
        .map((value) => ({ ...one, setting: `${one.setting} = "${value}"`, since: valueSince })),
    )
  })
}

/** Lists what a release may refuse in a value: all of it, each word of a list, each placeholder. */
const listParts = (value: string) => [
  value,
  ...value.split(/\s*,\s*/),
  ...(value.match(/\{\{\w+\}\}/g) ?? []),
]
