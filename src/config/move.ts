import { loadConfig, type LoadedConfig } from './config.ts'
import { readDatabase, type DatabaseConfig } from './database.ts'
import { readConfigFile } from './paths.ts'
import { createReader, type ConfigInput, type Problem } from './reader.ts'

/** The data directory to move, and the PostgreSQL database to move it to. */
type MoveConfig = { source: LoadedConfig; target: DatabaseConfig | null; problems: Problem[] }

/** Reads what `otpd migrate to-postgres` needs: here a data directory and a PostgreSQL database are named at once. */
export function loadMoveConfig(input: ConfigInput): MoveConfig {
  const source = loadConfig(input, { ignoresDatabase: true })
  const reader = createReader(input)
  // The source reports the problems of the file itself.
  readConfigFile(createReader(input), input)
  const { config: target, source: name } = readDatabase(reader, input)
  if (name === null) {
    reader.report(
      'OTPD_DATABASE_URL',
      'There is no PostgreSQL database to move to.',
      'Set OTPD_DATABASE_URL_FILE to a file with its URL.',
    )
  }
  return { source, target, problems: [...source.problems, ...reader.problems] }
}
