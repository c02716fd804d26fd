import type { Command } from 'commander'
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createProgram } from '../../cli/program.ts'
import { processIo } from '../../cli/terminal/terminal.ts'
import { completeCommands } from '../../src/shared/suggested-commands.ts'
import { createTestDatabase } from '../helpers/data-dir.ts'
import { createSharedDatabase, postgresUrl } from '../helpers/shared-database.ts'
import { createCliFixture } from './cli-fixture.ts'

describe('a suggested command', () => {
  const program = createProgram(processIo(), async () => {})
  const commandsBelow = (command: Command, path: string): [string, string[]][] => [
    [path, command.options.map(({ long }) => long ?? '')],
    ...command.commands.flatMap((child) => commandsBelow(child, `${path} ${child.name()}`)),
  ]
  // `version` compares with a data directory; nothing suggests it.
  const all = commandsBelow(program, 'otpd').filter(([path]) => path !== 'otpd version')

  test('gets the flags of this run that it takes, whichever it is', () => {
    const suggestions = all.map(([path, options]) => [
      `Look: ${path}; or ask.`,
      `Look: ${path}${options.includes('--data-dir') ? ' --data-dir ./data' : ''}${options.includes('--config') ? ' --config ./o.toml' : ''}; or ask.`,
    ])
    const given = { dataDir: './data', config: './o.toml' }
    expect(suggestions.map(([text = '']) => completeCommands(text, given))).toEqual(
      suggestions.map(([, completed = '']) => completed),
    )
  })

  test.each([
    ['otpd restore latest, or another', "otpd restore --data-dir '/srv/my data' latest, or another"],
    [
      'otpd audit verify --data-dir /srv; otpd doctor',
      "otpd audit verify --data-dir /srv; otpd doctor --data-dir '/srv/my data'",
    ],
    ['otpd serve; or: --data-dir DIR', "otpd serve --data-dir '/srv/my data'; or: --data-dir DIR"],
    ['see otpd server-side', 'see otpd server-side'],
  ])('%j becomes %j', (text, completed) => {
    expect(completeCommands(text, { dataDir: '/srv/my data' })).toBe(completed)
    expect(completeCommands(text, {})).toBe(text)
  })

  test('of doctor, of an error and of its JSON names the data directory that was given', async () => {
    const cli = createCliFixture()
    const dataDir = mkdtempSync(join(tmpdir(), 'otpd test '))
    const missing = join(dataDir, 'none')
    try {
      const doctor = await cli.home.otpd(['doctor', '--data-dir', missing])
      expect(doctor.stdout).toContain(`Create it with: otpd serve --data-dir '${missing}'`)
      const json = await cli.home.otpd(['doctor', '--json', '--data-dir', missing])
      expect(json.stdout).toContain(`Create it with: otpd serve --data-dir '${missing}'`)
      const error = await cli.home.otpd(['migrate', 'up', '--data-dir', missing])
      expect(error.stderr).toContain(`otpd serve --data-dir '${missing}'`)
      const errorJson = await cli.home.otpd(['migrate', 'up', '--json', '--data-dir', missing])
      expect(JSON.parse(errorJson.stderr).error.hint).toContain(`otpd serve --data-dir '${missing}'`)
    } finally {
      rmSync(dataDir, { recursive: true })
      cli.end()
    }
  })

  test.skipIf(postgresUrl === undefined)(
    'after a move to PostgreSQL leaves out the data directory',
    async () => {
      const cli = createCliFixture()
      const shared = await createSharedDatabase()
      const dataDir = mkdtempSync(join(tmpdir(), 'otpd-moved-'))
      const env = { OTPD_DATABASE_URL: shared.env.OTPD_DATABASE_URL, OTPD_DATABASE_UNSAFE: '1' }
      try {
        createTestDatabase(dataDir)
        const move = ['migrate', 'to-postgres', '--yes', '--data-dir', dataDir]
        const moved = await cli.home.otpd(move, { env })
        expect(moved.stderr).toEndWith('Next: otpd serve\n')
      } finally {
        rmSync(dataDir, { recursive: true })
        await shared.dispose()
        cli.end()
      }
    },
  )
})
