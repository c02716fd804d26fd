import { expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createReader, codeBlocks, commandLines, readDocument } from '../helpers/guide-blocks.ts'
import { startS3Server } from '../helpers/s3-server.ts'

test('the commands of the guide on backups work', async () => {
  const service = startS3Server()
  const reader = await createReader()
  const guide = readDocument('src/docs/backup.md')
  const env = {
    OTPD_DATA_DIR: reader.server.dataDir,
    OTPD_BACKUP_TO: 's3://backups/otpd',
    OTPD_BACKUP_S3_ENDPOINT: service.url,
    AWS_ACCESS_KEY_ID: 'AK',
    AWS_SECRET_ACCESS_KEY: 'SK',
  }
  const lines = commandLines(codeBlocks(guide, 'sh').join(''))
  expect(lines.length).toBeGreaterThan(4)
  const nas = join(reader.folder, 'nas')
  mkdirSync(nas)
  for (const line of lines) await reader.type(line.replaceAll('/mnt/nas', nas), { env })
  expect([...service.objects.keys()].filter((key) => key.endsWith('.sealed'))).toHaveLength(2)
  await reader.stop()
  await service.stop()
}, 60_000)
