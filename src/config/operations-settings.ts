import type { Setting } from './settings.ts'

/** The settings of what operators watch and what they keep, for `settings.ts`. */
export const operationsSettings = {
  metricsListen: {
    name: 'metrics.listen',
    kind: 'text',
    variable: 'OTPD_METRICS_LISTEN',
    default: 'off',
    description:
      'HOST:PORT on which Prometheus finds `/metrics`, such as 127.0.0.1:9464. It asks for no login.',
  },
  retentionPhoneDays: {
    name: 'retention.phoneDays',
    kind: 'integer',
    variable: 'OTPD_RETENTION_PHONE_DAYS',
    default: '30',
    description: 'Days after which a pseudonym takes the place of a phone number; 0 is never.',
  },
  retentionLogDays: {
    name: 'retention.logDays',
    kind: 'integer',
    variable: 'OTPD_RETENTION_LOG_DAYS',
    default: '90',
    description: 'Days after which log entries and webhook deliveries go; 0 is never.',
  },
  retentionRequestDays: {
    name: 'retention.requestDays',
    kind: 'integer',
    variable: 'OTPD_RETENTION_REQUEST_DAYS',
    default: '0',
    description: 'Days after which OTP requests go from the lists; 0 is never. Counts stay.',
  },
  retentionAuditDays: {
    name: 'retention.auditDays',
    kind: 'integer',
    variable: 'OTPD_RETENTION_AUDIT_DAYS',
    default: '365',
    description: 'Days after which entries of the audit trail go; 0 is never.',
  },
} as const satisfies Record<string, Setting>
