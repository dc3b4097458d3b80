// SPDX-License-Identifier: MIT
// JioChannel SRC DST 1|2: copies by streams of 8 KiB (1) or by FileChannel.transferTo (2).

import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

final class JioChannel {
	private static void byStreams(String src, String dst) throws IOException {
		byte[] room = new byte[8192];
		try (FileInputStream in = new FileInputStream(src); FileOutputStream out = new FileOutputStream(dst)) {
			for (int count = in.read(room); count > 0; count = in.read(room)) {
				out.write(room, 0, count);
			}
		}
	}

	private static void byTransfer(String src, String dst) throws IOException {
		try (FileChannel in = FileChannel.open(Path.of(src));
				FileChannel out = FileChannel.open(Path.of(dst), StandardOpenOption.CREATE,
						StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING)) {
			long at = 0;
			// One call moves at most 2 GiB, and 0 means that the source ended.
			for (long count = 1; count > 0; at += count) {
				count = in.transferTo(at, Long.MAX_VALUE - at, out);
			}
		}
	}

	public static void main(String[] args) throws IOException {
		if (args.length != 3 || !args[2].matches("[12]")) {
			System.err.println("usage: JioChannel SRC DST 1|2");
			System.exit(2);
		}
		if (args[2].equals("1")) {
			byStreams(args[0], args[1]);
		} else {
			byTransfer(args[0], args[1]);
		}
	}
}
