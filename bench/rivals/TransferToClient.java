// SPDX-License-Identifier: MIT
// TransferToClient HOST PORT FILE: sends FILE by transferTo (sendfile), and waits for the close.

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;

final class TransferToClient {
	public static void main(String[] args) throws IOException {
		long start = System.nanoTime();
		try (SocketChannel server =
				SocketChannel.open(new InetSocketAddress(args[0], Integer.parseInt(args[1])));
				FileChannel in = FileChannel.open(Path.of(args[2]))) {
			for (long at = 0; at < in.size();) {
				at += in.transferTo(at, in.size() - at, server);
			}
			server.shutdownOutput();
			server.read(ByteBuffer.allocate(1));
		}
		System.out.printf("%.6f seconds%n", (System.nanoTime() - start) / 1e9);
	}
}
