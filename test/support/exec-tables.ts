/** `[[exec]]` tables as the configuration reads them. */
import type { ExecTable } from '../../server/kernel/controls/exec/config.ts'
import { loadConfig } from '../../server/start/config.ts'

export function execTables(toml: string): readonly ExecTable[] {
  return loadConfig({ file: 'c.toml', env: {}, readFile: () => new TextEncoder().encode(toml) }).exec
}
