import type { MessageTemplate } from '../model/message-template.ts'

/** Templates of applications. They are deleted with their application. */
export type TemplateStore = {
  /** Lists the templates of an application by name. */
  list(appId: string): Promise<MessageTemplate[]>
  find(appId: string, name: string): Promise<MessageTemplate | undefined>
  /** Inserts a template, or replaces its texts. */
  save(appId: string, template: MessageTemplate): Promise<void>
  delete(appId: string, name: string): Promise<void>
}
