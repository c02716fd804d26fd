import type { Setting } from './settings.ts'

/** The `[guard]` table as data. */
export const guardSettings = {
  guardMode: {
    name: 'guard.mode',
    kind: 'text',
    variable: 'OTPD_GUARD_MODE',
    default: 'monitor',
    description:
      'The guard against SMS pumping: `off`, `monitor` (notes what it would block) or `enforce` (blocks).',
  },
  guardCountries: {
    name: 'guard.countries',
    kind: 'list',
    variable: 'OTPD_GUARD_COUNTRIES',
    default: 'all',
    description: 'The only countries that codes are sent to, as ISO codes; `001` for numbers of no country.',
  },
  guardDeniedCountries: {
    name: 'guard.deniedCountries',
    kind: 'list',
    variable: 'OTPD_GUARD_DENIED_COUNTRIES',
    default: 'none',
    description: 'Countries that no code is sent to.',
  },
  guardTrustedCountries: {
    name: 'guard.trustedCountries',
    kind: 'list',
    variable: 'OTPD_GUARD_TRUSTED_COUNTRIES',
    default: 'none',
    description: 'Countries whose codes pass the guard, uncounted.',
  },
  guardTrustedPrefixes: {
    name: 'guard.trustedPrefixes',
    kind: 'list',
    variable: 'OTPD_GUARD_TRUSTED_PREFIXES',
    default: 'none',
    description: 'Beginnings of phone numbers whose codes pass the guard, uncounted: `+` and digits.',
  },
  guardTrustedAddresses: {
    name: 'guard.trustedAddresses',
    kind: 'list',
    variable: 'OTPD_GUARD_TRUSTED_ADDRESSES',
    default: 'none',
    description: 'Addresses or CIDRs of clients (`clientIp`) whose codes pass the guard, uncounted.',
  },
  guardCountryPerHour: {
    name: 'guard.countryPerHour',
    kind: 'integer',
    variable: 'OTPD_GUARD_COUNTRY_PER_HOUR',
    default: '3',
    description:
      'Unverified messages of an application to a country in an hour that always pass; 0 is no limit.',
  },
  guardCountryPerDay: {
    name: 'guard.countryPerDay',
    kind: 'integer',
    variable: 'OTPD_GUARD_COUNTRY_PER_DAY',
    default: '20',
    description: 'The same in a day.',
  },
  guardPrefixPerHour: {
    name: 'guard.prefixPerHour',
    kind: 'integer',
    variable: 'OTPD_GUARD_PREFIX_PER_HOUR',
    default: '5',
    description: 'The same to numbers that differ in their last four digits only, in an hour.',
  },
  guardPrefixPerDay: {
    name: 'guard.prefixPerDay',
    kind: 'integer',
    variable: 'OTPD_GUARD_PREFIX_PER_DAY',
    default: '10',
    description: 'The same in a day.',
  },
  guardAddressPerHour: {
    name: 'guard.addressPerHour',
    kind: 'integer',
    variable: 'OTPD_GUARD_ADDRESS_PER_HOUR',
    default: '5',
    description: 'The same for one client address (a `/64` of IPv6), in an hour.',
  },
  guardAddressPerDay: {
    name: 'guard.addressPerDay',
    kind: 'integer',
    variable: 'OTPD_GUARD_ADDRESS_PER_DAY',
    default: '10',
    description: 'The same in a day.',
  },
  guardAddressCountries: {
    name: 'guard.addressCountries',
    kind: 'integer',
    variable: 'OTPD_GUARD_ADDRESS_COUNTRIES',
    default: '3',
    description:
      'Countries without a verified code that one client address may send to in a day; 0 is no limit.',
  },
  guardHourlyPercent: {
    name: 'guard.hourlyPercent',
    kind: 'integer',
    variable: 'OTPD_GUARD_HOURLY_PERCENT',
    default: '20',
    description: 'Unverified messages that pass in an hour, of a hundred verified ones.',
  },
  guardDailyPercent: {
    name: 'guard.dailyPercent',
    kind: 'integer',
    variable: 'OTPD_GUARD_DAILY_PERCENT',
    default: '30',
    description: 'The same in a day.',
  },
  guardApplicationPerDay: {
    name: 'guard.applicationPerDay',
    kind: 'integer',
    variable: 'OTPD_GUARD_APPLICATION_PER_DAY',
    default: '0',
    description: 'Messages of one application in a UTC day, verified or not; 0 is no limit.',
  },
  guardTotalPerDay: {
    name: 'guard.totalPerDay',
    kind: 'integer',
    variable: 'OTPD_GUARD_TOTAL_PER_DAY',
    default: '0',
    description: 'Messages of all applications in a UTC day; 0 is no limit.',
  },
} as const satisfies Record<string, Setting>
