import type { ApplicationPage } from '../model/application-page.ts'

/** Ready pages of applications. They are deleted with their application. */
export type PageStore = {
  /** @returns `defaultPage` if the application has none */
  find(appId: string): Promise<ApplicationPage>
  save(appId: string, page: ApplicationPage): Promise<void>
}
