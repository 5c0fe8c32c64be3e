/** The section [files]. */
import { z } from 'zod'
import { key, path, section } from '../../../../server/kit/config.ts'

export const filesSection = section(
  z
    .strictObject({ table: key(path(), '/proc/sys/fs/file-nr', 'The file in which the kernel counts open files.') })
    .describe('The open files of this machine.'),
)
