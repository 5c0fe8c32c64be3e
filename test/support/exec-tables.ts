/** `[[exec]]` tables as the configuration reads them. */
import { type ExecTable, loadConfig } from '../../server/config/config.ts'

export function execTables(toml: string): readonly ExecTable[] {
  return loadConfig({ file: 'c.toml', env: {}, readFile: () => new TextEncoder().encode(toml) }).exec
}
