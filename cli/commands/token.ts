import type { CliCommand } from './command.ts'
import { apiTokenScopes } from '../../src/shared/api-token-scopes.ts'
import { readExpiry, readScopes } from '../client/api-tokens.ts'
import { findToken, listTokens } from '../client/find.ts'
import { idempotencyHeaders, idempotencyKeyOption, type IdempotencyOption } from '../client/idempotency.ts'
import { addListOptions, printList, readList, type ListOptions } from '../client/lists.ts'
import type { ApiToken } from '../client/resources.ts'
import { confirm } from '../terminal/confirm.ts'
import type { Output } from '../terminal/output.ts'
import { kept, optional } from '../terminal/table.ts'
import { printable } from '../terminal/text.ts'

type CreateOptions = IdempotencyOption & { scope: string; expires?: string }

/** Registers the commands for API tokens. */
export function addTokenCommands(program: CliCommand) {
  const token = program
    .command('token')
    .alias('tokens')
    .description('API tokens, with which programs call the API')

  token
    .command('create')
    .alias('new')
    .argument('<name>', 'name of the token, 1 to 80 characters')
    .description('create an API token, and print it once')
    .option(
      '--scope <scopes>',
      `${apiTokenScopes.join(', ')}, separated by commas; support and read include otp:read, write includes all (default read)`,
      'read',
    )
    .option('--expires <time>', 'lifetime like 12h or 30d, or never (default 90d)')
    .addOption(idempotencyKeyOption())
    .examples(
      'otpd token create dashboard --scope otp:read',
      'otpd token create helpdesk --scope support --expires 30d',
      'OTPD_TOKEN="$(otpd token create deploy --scope write --expires 1h --quiet)" otpd project list',
    )
    .run(async ({ io, connect, output }, name: string, options: CreateOptions) => {
      const { scope, expires } = options
      const expiresAt = expires === undefined ? undefined : readExpiry(expires, io.now())
      const body = { name, scopes: readScopes(scope), ...(expiresAt !== undefined && { expiresAt }) }
      const call = { body, headers: idempotencyHeaders(options) }
      const response = await connect().api.asDeveloper('POST', '/v1/tokens', call)
      const { data } = response
      output.printResult(response.body, () => data.token)
      const facts = `${data.scopes.join(', ')}; expires ${expiryText(data, output.formatTime)}`
      output.note(`${output.paintError.green('✓')} API token ${printable(data.name)}: ${facts}`)
      output.note(
        '  Store it now: it is not shown again. Programs use it as OTPD_TOKEN, people with otpd login --token-stdin.',
      )
    })

  addListOptions(token.command('list').alias('ls').description('list your API tokens, newest first'))
    .examples('otpd token list', 'otpd token list --json')
    .run(async ({ api, io, output }, options: ListOptions) => {
      const page = await readList(options, (query) => api.asDeveloper('GET', '/v1/tokens', { query }))
      printList(output, page, (tokens) => listText(tokens, output, io.now()))
    })

  token
    .command('revoke')
    .alias('rm')
    .argument('<token>', 'id or name of the token')
    .description('revoke an API token; programs that use it are refused at once')
    .examples('otpd token revoke dashboard --yes')
    .run(async (context, idOrName: string) => {
      const { api, output } = context
      const id = await confirm(context, {
        find: () => findToken(api, idOrName),
        async describe(id) {
          const name = (await listTokens(api)).find((listed) => listed.id === id)?.name ?? id
          return { question: `Revoke the API token ${printable(name)}?`, name }
        },
      })
      const response = await api.asDeveloper('DELETE', '/v1/tokens/:id', { params: { id } })
      output.printResult(response.body, () =>
        output.done(`API token ${output.paint.bold(printable(idOrName))} revoked`),
      )
    })
}

function listText(tokens: ApiToken[], output: Output, nowMs: number) {
  if (tokens.length === 0) return 'No API tokens yet. Create one: otpd token create NAME'
  return output.formatTable(
    [
      'NAME',
      kept('SCOPES'),
      optional('TOKEN'),
      kept(output.timeHeading('EXPIRES')),
      optional(output.timeHeading('USED')),
      'ID',
    ],
    tokens.map((listed) => [
      printable(listed.name),
      listed.scopes.join(','),
      // Without the prefix that all have.
      listed.preview.replace(/^.*_/, ''),
      isExpired(listed, nowMs) ? 'expired' : expiryText(listed, output.columnTime),
      listed.lastUsedAt === null ? 'never' : output.columnTime(listed.lastUsedAt),
      listed.id,
    ]),
  )
}

const isExpired = ({ expiresAt }: ApiToken, nowMs: number) =>
  expiresAt !== null && Date.parse(expiresAt) <= nowMs

const expiryText = ({ expiresAt }: Pick<ApiToken, 'expiresAt'>, format: (iso: string) => string) =>
  expiresAt === null ? 'never' : format(expiresAt)
