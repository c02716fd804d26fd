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
} as const satisfies Record<string, Setting>

/** A setting of 0.1.0 that is accepted, ignored and warned about. */
export type RemovedSetting = { name: string; variable: string; remedy: string }

const followsConversion =
  'Remove it: the guard now follows the phones that each developer verifies (otpd guard status).'

/** Remove with the minor release after the next. */
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
