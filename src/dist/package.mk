# SPDX-License-Identifier: MIT
# The packages' part of the Makefile: installation, source archive, Debian and RPM packages.

# What is installed: mode, file, destination; or the word link, its target, its name. Uninstall goes through the same list.
PC := $(BUILD)/fcopy.pc
INSTALLED = \
	755 $(PROGRAM) $(call quoted,$(BINDIR)/fcopy) \
	644 include/fcopy.h $(call quoted,$(INCDIR)/fcopy.h) \
	644 $(LIB) $(call quoted,$(LIBDIR)/libfcopy.a) \
	644 $(SHARED) $(call quoted,$(LIBDIR)/libfcopy.so.$(VERSION)) \
	link libfcopy.so.$(VERSION) $(call quoted,$(LIBDIR)/$(SONAME)) \
	link $(SONAME) $(call quoted,$(LIBDIR)/libfcopy.so) \
	644 $(PC) $(call quoted,$(LIBDIR)/pkgconfig/fcopy.pc) \
	644 src/man/fcopy.1 $(call quoted,$(MANDIR)/man1/fcopy.1) \
	644 src/man/fcopy-json.5 $(call quoted,$(MANDIR)/man5/fcopy-json.5) \
	644 src/man/fcopy-part.5 $(call quoted,$(MANDIR)/man5/fcopy-part.5) \
	644 src/man/fcopy-shards.7 $(call quoted,$(MANDIR)/man7/fcopy-shards.7) \
	644 src/man/libfcopy.3 $(call quoted,$(MANDIR)/man3/libfcopy.3) \
	644 src/dist/fcopy.schema.json $(call quoted,$(DATADIR)/fcopy/fcopy.schema.json) \
	644 src/dist/examples/job.yaml $(call quoted,$(DATADIR)/fcopy/examples/job.yaml) \
	644 src/dist/examples/table.c $(call quoted,$(DATADIR)/fcopy/examples/table.c) \
	644 src/dist/completions/fcopy.bash $(call quoted,$(BASHDIR)/fcopy) \
	644 src/dist/completions/_fcopy $(call quoted,$(ZSHDIR)/_fcopy) \
	644 src/dist/completions/fcopy.fish $(call quoted,$(FISHDIR)/fcopy.fish)

# A path as pkg-config reads it inside double quotes, and as the right side of sed's s|||.
in_pc = $(call quoted,s|@$(1)@|$(subst |,\|,$(subst &,\&,$(subst \,\\,$(2))))|)

$(PC): src/dist/fcopy.pc.in force
	@mkdir -p $(@D)
	$(Q)sed -e $(call in_pc,libdir,$(LIBDIR)) -e $(call in_pc,includedir,$(INCDIR)) \
		-e $(call in_pc,version,$(VERSION)) -e $(call in_pc,uring,$(LIBURING)) $< >$@

.PHONY: install uninstall check-install
install: all $(PC) ## into $(DESTDIR)$(PREFIX)
	@printf '%s\n' $(INSTALLED) | while read -r mode && read -r from && IFS= read -r to; do \
		to=$(call quoted,$(DESTDIR))$$to; \
		echo "install $$to"; \
		if [ "$$mode" = link ]; then ln -sfn "$$from" "$$to"; else install -D -m "$$mode" "$$from" "$$to"; fi || exit 1; \
	done

uninstall: ## undoes install
	@printf '%s\n' $(INSTALLED) | while read -r mode && read -r from && IFS= read -r to; do \
		to=$(call quoted,$(DESTDIR))$$to; \
		echo "remove $$to"; \
		rm -f "$$to" || exit 1; \
	done
	@rmdir $(call quoted,$(DESTDIR)$(DATADIR)/fcopy/examples) \
		$(call quoted,$(DESTDIR)$(DATADIR)/fcopy) 2>/dev/null || true

check-install: all $(PC) ## proves that uninstall undoes install
	rm -rf $(BUILD)/root && mkdir -p $(BUILD)/root
	$(MAKE) --no-print-directory install DESTDIR=$(call absolute,$(BUILD)/root)
	$(MAKE) --no-print-directory uninstall DESTDIR=$(call absolute,$(BUILD)/root)
	@left=$$(find $(BUILD)/root ! -type d); \
		[ -z "$$left" ] && echo "nothing is left" || { echo "left: $$left"; exit 1; }

# The date that packages show: that of the commit, so that two builds of one commit are equal.
EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y src/dist/CHANGELOG.md))
DEB := $(BUILD)/deb/fcopy-$(VERSION)
# The package is built by Debian's rules, whatever this make was told.
DEB_CLEAN := $(addprefix -u ,MAKEFLAGS MAKELEVEL BUILD PROGRAM PREFIX DESTDIR CC CFLAGS CPPFLAGS LDFLAGS)
.PHONY: deb
deb: ## Debian packages in build/deb/ (dpkg-dev, debhelper)
	rm -rf $(BUILD)/deb && mkdir -p $(DEB)
	tar -cf - Makefile LICENSE fcopy.c include src tests | tar -xf - -C $(DEB)
	mv $(DEB)/src/dist/debian $(DEB)/debian
	sed 's|@version@|$(VERSION)|; s|@date@|$(shell date -Ru -d @$(EPOCH))|' \
		src/dist/debian/changelog >$(DEB)/debian/changelog
	cd $(DEB) && env $(DEB_CLEAN) dpkg-buildpackage -us -uc -b
	@ls $(BUILD)/deb/*.deb

RPM := $(BUILD)/rpm
# The tools of other systems: rpmbuild may run where no RPM package satisfies BuildRequires.
.PHONY: rpm
rpm: dist ## RPM packages of HEAD in build/rpm/ (rpmbuild)
	rm -rf $(RPM) && mkdir -p $(RPM)/SOURCES
	cp $(BUILD)/fcopy-$(VERSION).tar.gz $(RPM)/SOURCES/
	sed 's|@version@|$(VERSION)|' src/dist/fcopy.spec >$(RPM)/fcopy.spec
	env $(DEB_CLEAN) rpmbuild --quiet -ba $(RPMFLAGS) --define '_topdir $(CURDIR)/$(RPM)' $(RPM)/fcopy.spec
	@find $(RPM) -name '*.rpm'

.PHONY: dist
dist: ## a source archive of HEAD in build/
	@mkdir -p $(BUILD)
	git archive --prefix=fcopy-$(VERSION)/ -o $(BUILD)/fcopy-$(VERSION).tar.gz HEAD
