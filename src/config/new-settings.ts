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
    'server.drainSeconds',
  ],
}

/** A setting that an older release does not know, and the release that introduced it. */
type NewSetting = SettingValue & { since: string }

/** Lists the settings that are set, and that a release refuses because they are newer. */
export function listNewerSettings(settings: readonly SettingValue[], release: string): NewSetting[] {
  const later = Object.entries(newSettings).filter(([since]) => Bun.semver.order(since, release) > 0)
  return settings.flatMap((value) => {
    // A flag, a variable of otpd, or a line of the file.
    const isSet = /^(--|OTPD_)|:\d+$/.test(value.origin)
    const name = value.setting.replace(/^(alerts|plans)\.[^.]+\./, '$1.*.')
    const since = later.find(([, names]) => names.includes(name))?.[0]
    return isSet && since !== undefined ? [{ ...value, since }] : []
  })
}
