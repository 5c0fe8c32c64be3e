/** The section [files]. */
import { z } from 'zod'
import { section } from '../../../../server/kernel/config/schema.ts'
import { key, path } from '../../../../server/kernel/config/value-types.ts'

export const filesSection = section(
  z
    .strictObject({ table: key(path(), '/proc/sys/fs/file-nr', 'The file in which the kernel counts open files.') })
    .describe('The open files of this machine.'),
)
