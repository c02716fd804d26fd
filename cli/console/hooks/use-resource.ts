import { buildPath, type Call, type ExistingPath, type ResponseData } from '../../client/routes.ts'
import { useConsole } from '../console-context.ts'
import { usePolled, type Polled, type PollOptions } from './use-polled.ts'

/** Polls what a `GET` of the API returns. The response is kept under its path and query. */
export function useResource<Path extends string>(
  path: Path & ExistingPath<'GET', Path>,
  call: Call<'GET', Path> = {},
  options: PollOptions<ResponseData<'GET', Path>> = {},
): Polled<ResponseData<'GET', Path>> {
  const { api } = useConsole()
  const load = async () => (await api.asDeveloper('GET', path, call)).data
  return usePolled(buildPath(path, call), load, options)
}
