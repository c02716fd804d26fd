import type { Setting } from './setting.ts'

/** Settings of the `[backup]` table, part of `settings`. */
export const backupSettings = {
  backupEvery: {
    name: 'backup.every',
    kind: 'text',
    variable: 'OTPD_BACKUP_EVERY',
    default: 'off',
    description: 'How often the server backs itself up, like `24h`, `30m` or `7d`; at least `5m`. Or `off`.',
  },
  backupKeep: {
    name: 'backup.keep',
    kind: 'integer',
    variable: 'OTPD_BACKUP_KEEP',
    default: '14',
    description: 'Backups to keep: older ones than the newest that verified are deleted. At least 1.',
  },
  backupTo: {
    name: 'backup.to',
    kind: 'text',
    variable: 'OTPD_BACKUP_TO',
    default: 'backups in the data directory',
    description:
      'Where backups go: a folder that exists, or `s3://BUCKET/PREFIX`, to which they are encrypted.',
  },
  backupS3Endpoint: {
    name: 'backup.s3Endpoint',
    kind: 'text',
    variable: 'OTPD_BACKUP_S3_ENDPOINT',
    default: '$AWS_ENDPOINT_URL_S3, $AWS_ENDPOINT_URL, otherwise Amazon S3 in the region',
    description: 'URL of an S3 service other than Amazon, without the bucket.',
  },
  backupS3Region: {
    name: 'backup.s3Region',
    kind: 'text',
    variable: 'OTPD_BACKUP_S3_REGION',
    default: '$AWS_REGION, $AWS_DEFAULT_REGION, otherwise us-east-1',
    description: 'Region of the bucket.',
  },
  backupAccessKeyId: {
    name: 'backup.accessKeyId',
    kind: 'text',
    variable: 'OTPD_BACKUP_ACCESS_KEY_ID',
    default: '$AWS_ACCESS_KEY_ID',
    description: 'Access key ID that may list, read, write and delete objects with the prefix.',
  },
  backupSecretAccessKeyFile: {
    name: 'backup.secretAccessKeyFile',
    kind: 'text',
    variable: 'OTPD_BACKUP_SECRET_ACCESS_KEY_FILE',
    default: '$AWS_SECRET_ACCESS_KEY',
    description: 'File that contains the secret access key. Other users must not read it.',
  },
  backupSecretAccessKeyEnv: {
    name: 'backup.secretAccessKeyEnv',
    kind: 'text',
    variable: 'OTPD_BACKUP_SECRET_ACCESS_KEY_ENV',
    default: '$AWS_SECRET_ACCESS_KEY',
    description: 'Name of the variable that contains the secret access key, instead of a file.',
  },
} as const satisfies Record<string, Setting>
