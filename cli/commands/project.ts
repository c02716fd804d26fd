import type { Command } from 'commander'
import { examples } from '../examples.ts'
import type { Run } from '../program.ts'
import { addListOptions, listQuery, noteMore, type ListOptions } from '../lists.ts'
import { facts, localTime, printable, shellWord, table } from '../text.ts'

export function addProjectCommands(program: Command, run: Run) {
  const project = program
    .command('project')
    .alias('projects')
    .description('projects, which hold applications')

  project
    .command('create')
    .alias('new')
    .argument('<name>', '1 to 80 characters')
    .description('create a project')
    .option('-d, --description <text>', 'up to 280 characters')
    .addHelpText(
      'after',
      examples(
        'otpd project create storefront',
        "otpd project create shop --description 'Sign-in of the shop'",
      ),
    )
    .action((name: string, { description }: { description?: string }, command: Command) =>
      run(command, async ({ connect, output }) => {
        const { paint } = output
        const body = { name, ...(description !== undefined && { description }) }
        const created = await connect().api.asDeveloper('POST', '/v1/projects', { body })
        const { data } = created
        output.answer(created.body, () =>
          [
            `${paint.green('✓')} Project ${paint.bold(printable(data.name))}`,
            facts(
              [
                ['Id', data.id],
                ['Description', data.description && printable(data.description)],
              ],
              paint,
            ),
          ].join('\n'),
        )
        output.next(`otpd app create web --project ${shellWord(name)} --env test --env-file .env.otpd`)
      }),
    )

  addListOptions(project.command('list').alias('ls').description('list your projects, newest first'))
    .addHelpText('after', examples('otpd project list', 'otpd project list --json'))
    .action((options: ListOptions, command: Command) =>
      run(command, async ({ connect, output }) => {
        const query = listQuery(options)
        const found = await connect().api.asDeveloper('GET', '/v1/projects', { query })
        output.answer(found.body, () =>
          found.data.length === 0
            ? 'No projects yet. Create one: otpd project create NAME'
            : table(
                ['ID', 'NAME', 'APPS', 'CREATED', 'DESCRIPTION'],
                found.data.map((one) => [
                  one.id,
                  printable(one.name),
                  String(one.applicationCount),
                  localTime(one.createdAt).slice(0, 10),
                  printable(one.description ?? ''),
                ]),
                output.paint,
              ),
        )
        noteMore(output, found)
      }),
    )
}
