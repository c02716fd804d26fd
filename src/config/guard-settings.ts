import type { Setting } from './setting.ts'

/** Settings of the `[guard]` table, part of `settings`. */
export const guardSettings = {
  guardMode: {
    name: 'guard.mode',
    kind: 'text',
    variable: 'OTPD_GUARD_MODE',
    default: 'enforce; monitor without a provider',
    description: 'SMS pumping guard: `off`, `monitor` (logs what it would block) or `enforce` (blocks).',
  },
  guardCountries: {
    name: 'guard.countries',
    kind: 'list',
    variable: 'OTPD_GUARD_COUNTRIES',
    default: 'all',
    description: 'Allow-list of countries as ISO codes; `001` covers numbers of no country.',
  },
  guardDeniedCountries: {
    name: 'guard.deniedCountries',
    kind: 'list',
    variable: 'OTPD_GUARD_DENIED_COUNTRIES',
    default: 'none',
    description: 'Countries that codes are never sent to.',
  },
  guardAllowedNumberTypes: {
    name: 'guard.allowedNumberTypes',
    kind: 'list',
    variable: 'OTPD_GUARD_ALLOWED_NUMBER_TYPES',
    default: 'none',
    description:
      'Types of numbers that get codes although they are costly (`premium`, `sharedCost`, `personal`, `satellite`, `international`), or get SMS although they cannot read it (`fixedLine`, `company`, `pager`, `voicemail`, `tollFree`).',
  },
  guardTrustedPrefixes: {
    name: 'guard.trustedPrefixes',
    kind: 'list',
    variable: 'OTPD_GUARD_TRUSTED_PREFIXES',
    default: 'none',
    description:
      'Phone number prefixes (`+` and digits, such as `+31`) whose messages always pass and are not counted.',
  },
  guardTrustedAddresses: {
    name: 'guard.trustedAddresses',
    kind: 'list',
    variable: 'OTPD_GUARD_TRUSTED_ADDRESSES',
    default: 'none',
    description: 'Client addresses or CIDRs (`clientIp`) whose messages always pass and are not counted.',
  },
  guardTotalPerDay: {
    name: 'guard.totalPerDay',
    kind: 'integer',
    variable: 'OTPD_GUARD_TOTAL_PER_DAY',
    default: '0',
    description: 'Messages of all applications per UTC day; 0 means unlimited.',
  },
  guardSpendPerDay: {
    name: 'guard.spendPerDay',
    kind: 'text',
    variable: 'OTPD_GUARD_SPEND_PER_DAY',
    default: '0',
    description:
      'Cost of the messages of all applications per UTC day, in `prices.currency`, such as `"250.00"`; 0 means unlimited.',
  },
  guardChallengeKind: {
    name: 'guard.challenge.kind',
    kind: 'text',
    variable: 'OTPD_GUARD_CHALLENGE_KIND',
    default: 'none: the send is refused',
    description:
      'Challenge for users whose send an allowance would refuse: `turnstile`, `hcaptcha`, or `altcha`, which needs no other service.',
  },
  guardChallengeSiteKey: {
    name: 'guard.challenge.siteKey',
    kind: 'text',
    variable: 'OTPD_GUARD_CHALLENGE_SITE_KEY',
    default: 'none; required by turnstile and hcaptcha',
    description: 'Public key of the widget, which pages get with the error.',
  },
  guardChallengeSecret: {
    name: 'guard.challenge.secret',
    kind: 'text',
    variable: 'OTPD_GUARD_CHALLENGE_SECRET',
    notInFile: true,
    secret: true,
    default: 'none; turnstile and hcaptcha require it or the file',
    description: 'Secret that otpd checks tokens of the widget with.',
  },
  guardChallengeSecretFile: {
    name: 'guard.challenge.secretFile',
    kind: 'text',
    variable: 'OTPD_GUARD_CHALLENGE_SECRET_FILE',
    default: 'none',
    description: 'File that contains the secret, instead of the variable. Other users must not read it.',
  },
  guardChallengeHostnames: {
    name: 'guard.challenge.hostnames',
    kind: 'list',
    variable: 'OTPD_GUARD_CHALLENGE_HOSTNAMES',
    default: 'all that the site key allows',
    description: 'Host names of the pages on which a challenge may have been passed.',
  },
  guardChallengeTimeoutSeconds: {
    name: 'guard.challenge.timeoutSeconds',
    kind: 'integer',
    variable: 'OTPD_GUARD_CHALLENGE_TIMEOUT_SECONDS',
    default: '5',
    description:
      'How long a send waits for the service that checks its token, 1 to 10 seconds; then the challenge is not passed.',
  },
  guardChallengeVerifyUrl: {
    name: 'guard.challenge.verifyUrl',
    kind: 'text',
    variable: 'OTPD_GUARD_CHALLENGE_VERIFY_URL',
    default: "the service's own",
    description: 'URL at which tokens are checked (siteverify): https, or http on loopback.',
  },
} as const satisfies Record<string, Setting>

/** A setting of 0.1.0 that is refused with what to write instead; 0.2.0 ignored it with a warning. */
type RemovedSetting = { name: string; variable: string; remedy: string }

const followsConversion =
  'Remove it: the guard now follows the phones that each developer verifies (otpd guard status).'

/** Settings that 0.3.0 refuses by their name. From 0.4.0 on they are unknown like any other: remove this list then. */
export const removedSettings: readonly RemovedSetting[] = [
  ...[
    ['guard.countryPerHour', 'OTPD_GUARD_COUNTRY_PER_HOUR'],
    ['guard.countryPerDay', 'OTPD_GUARD_COUNTRY_PER_DAY'],
    ['guard.prefixPerHour', 'OTPD_GUARD_PREFIX_PER_HOUR'],
    ['guard.prefixPerDay', 'OTPD_GUARD_PREFIX_PER_DAY'],
    ['guard.addressPerHour', 'OTPD_GUARD_ADDRESS_PER_HOUR'],
    ['guard.addressPerDay', 'OTPD_GUARD_ADDRESS_PER_DAY'],
    ['guard.addressCountries', 'OTPD_GUARD_ADDRESS_COUNTRIES'],
    ['guard.hourlyPercent', 'OTPD_GUARD_HOURLY_PERCENT'],
    ['guard.dailyPercent', 'OTPD_GUARD_DAILY_PERCENT'],
  ].map(([name = '', variable = '']) => ({ name, variable, remedy: followsConversion })),
  {
    name: 'guard.trustedCountries',
    variable: 'OTPD_GUARD_TRUSTED_COUNTRIES',
    remedy: 'Use guard.trustedPrefixes instead: "+31" is all of the Netherlands.',
  },
  {
    name: 'guard.applicationPerDay',
    variable: 'OTPD_GUARD_APPLICATION_PER_DAY',
    remedy: 'Use guard.totalPerDay, a cap for all applications together.',
  },
]
