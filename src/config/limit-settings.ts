import type { Setting } from './setting.ts'

/** Settings of the `[limits]` table, part of `settings`. */
export const limitSettings = {
  sendPerMinute: {
    name: 'limits.sendPerMinute',
    kind: 'integer',
    variable: 'OTPD_SEND_PER_MINUTE',
    default: "the plan's",
    description: 'Sends per minute and application, for every plan; at most 10000, 0 means unlimited.',
  },
  verifyPerMinute: {
    name: 'limits.verifyPerMinute',
    kind: 'integer',
    variable: 'OTPD_VERIFY_PER_MINUTE',
    default: "the plan's",
    description:
      'Verifications per minute and application, for every plan; at most 10000, 0 means unlimited.',
  },
  consolePerMinute: {
    name: 'limits.consolePerMinute',
    kind: 'integer',
    variable: 'OTPD_CONSOLE_PER_MINUTE',
    default: "the plan's",
    description:
      'Calls of console routes per minute and developer, for every plan; at most 10000, 0 means unlimited.',
  },
  lookupsPerMinute: {
    name: 'limits.lookupsPerMinute',
    kind: 'integer',
    variable: 'OTPD_LOOKUPS_PER_MINUTE',
    default: "the plan's",
    description:
      'Look-ups of users and histories per minute and application, for every plan; at most 10000, 0 means unlimited.',
  },
  phoneCheckBudget: {
    name: 'limits.phoneCheckBudget',
    kind: 'integer',
    variable: 'OTPD_PHONE_CHECK_BUDGET',
    default: '25',
    description:
      'Failed checks allowed per phone and trust level, refilled by one an hour; 0 disables the limit.',
  },
  phoneSendBudget: {
    name: 'limits.phoneSendBudget',
    kind: 'text',
    variable: 'OTPD_PHONE_SEND_BUDGET',
    default: 'enforce; monitor without a provider',
    description:
      'Limit of sends per phone and trust level (5 in 10 minutes, 20 a day): `off`, `monitor` or `enforce`.',
  },
} as const satisfies Record<string, Setting>
