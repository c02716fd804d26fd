import type { Setting } from './setting.ts'

/** Settings of a PostgreSQL database and of the nodes that share it, part of `settings`. */
export const databaseSettings = {
  databaseUrl: {
    name: 'databaseUrl',
    kind: 'text',
    variable: 'OTPD_DATABASE_URL',
    notInFile: true,
    secret: true,
    default: 'SQLite in the data directory',
    description:
      'PostgreSQL database that several nodes may share: `postgres://USER:PASSWORD@HOST/NAME?sslmode=…`.',
  },
  databaseUrlFile: {
    name: 'database.urlFile',
    kind: 'text',
    variable: 'OTPD_DATABASE_URL_FILE',
    default: 'none',
    description:
      'File that contains the URL of the database, instead of OTPD_DATABASE_URL. Other users must not read it.',
  },
  databaseConnections: {
    name: 'database.connections',
    kind: 'integer',
    variable: 'OTPD_DATABASE_CONNECTIONS',
    default: '9',
    description:
      'Connections of a node to PostgreSQL, 4 to 100: 3 that write, 1 for background work, the rest read.',
  },
  databaseStatements: {
    name: 'database.statements',
    kind: 'text',
    variable: 'OTPD_DATABASE_STATEMENTS',
    default: 'named',
    description: '`unnamed` for a connection pooler that loses prepared statements, otherwise `named`.',
  },
  databaseUnsafe: {
    name: 'databaseUnsafe',
    kind: 'switch',
    variable: 'OTPD_DATABASE_UNSAFE',
    notInFile: true,
    default: 'off',
    description: 'For tests: accept a PostgreSQL server that may lose acknowledged writes (`fsync=off`).',
  },
  node: {
    name: 'server.node',
    kind: 'text',
    variable: 'OTPD_NODE',
    default: 'the host name',
    description: 'Name of this node among those that share a PostgreSQL database, at most 50 characters.',
  },
} as const satisfies Record<string, Setting>
