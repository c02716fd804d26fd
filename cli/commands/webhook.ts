import type { Command } from 'commander'
import type { RunCommand } from '../context.ts'
import { addDeliveryCommands } from './webhook-deliveries.ts'
import { addEndpointCommands } from './webhook-endpoints.ts'
import { addListenCommand } from './webhook-listen.ts'
import { addVerifyCommand } from './webhook-verify.ts'

export function addWebhookCommands(program: Command, runCommand: RunCommand) {
  const webhook = program
    .command('webhook')
    .alias('webhooks')
    .description('events that your backend is told of')
  addEndpointCommands(webhook, runCommand)
  addDeliveryCommands(webhook, runCommand)
  addListenCommand(webhook, runCommand)
  addVerifyCommand(webhook, runCommand)
}
